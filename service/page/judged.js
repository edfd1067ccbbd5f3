// A scored pair on the page: what the score says in words, the judgements with their reasons, marked sentences.

import { make } from "./dom.js";
import { reason, t } from "./i18n.js";

export const JUDGEMENTS = ["structure", "synonyms", "meaning", "fluency"];
const KINDS = ["moved", "replaced", "added", "lost"];
const CHANGED = ["no_paraphrase", "other_meaning"];
const HAN = /\p{Script=Han}/u;

export const legend = () =>
  make("p", { class: "legend" }, ...KINDS.map((kind) => make("span", {}, make("span", { class: kind }, t(kind)))));

// What /v1/about says that words need: where the levels of the score begin, and how long a sentence may be.
export const known = { levels: [], longest: 0 };

// Below it, the service gives reasons for the meaning and the fluency (LOW in udfs/meaning/explain.py).
const DOUBTFUL = 0.6;
const SURE = 0.8;
const REORDERED = 40; // points of structure above which nobody says that the order was kept

// The one scale of the page: a score or judgement of 0 to 1 as whole points of 100, rounded down as the levels are.
export const points = (value) => Math.floor(100 * value + 1e-6);
export const number = (value) => (value === null || value === undefined ? "–" : String(points(value)));

// Whether the meaning changed: "changed" if the verdict says so, "doubt" if the service gives a reason or would, else "".
// Of a text whose sentences are scored, these decide.
export function doubt({ verdict, meaning, reasons }, sentences = []) {
  const doubtful = (meaning ?? 1) < DOUBTFUL || (reasons ?? []).some((text) => text.startsWith("meaning"));
  const own = CHANGED.includes(verdict) ? "changed" : doubtful ? "doubt" : "";
  const found = sentences.map((one) => doubt(one)).filter(Boolean);
  if (!sentences.length || (own === "changed" && found.length)) return own;
  return found.includes("changed") ? "changed" : found.length || own ? "doubt" : "";
}

// The one rule for what is said of the meaning: the verdict alone says that it changed, or that this is no
// paraphrase; else the judgement says how sure it is that the meaning was kept. A text names its doubtful sentences.
function ofMeaning(scores, sentences) {
  const doubted = sentences.filter((one) => doubt(one)).map((one) => one.number);
  if (doubted.length) return [t("doubted")(doubted)];
  if (sentences.length && doubt(scores)) return [t("as_a_whole")];
  if ((scores.meaning ?? null) === null || CHANGED.includes(scores.verdict)) return [];
  return [t("meanings")[doubt(scores) ? 0 : scores.meaning >= SURE ? 2 : 1]];
}

// What is said of a pair everywhere: "good, a clear rewording, no change of meaning found". sentences: the scored ones of a text.
// toned: it was written in a tone, so that it matters how it reads, not how much changed.
export function verdictOf(scores, { sentences = [], toned = false } = {}) {
  const { verdict, fluency } = scores;
  if (!verdict) return "";
  const meaning = ofMeaning(scores, sentences);
  const said = sentences.length && CHANGED.includes(verdict) && !sentences.some((one) => doubt(one)) ? "poor" : verdict;
  const own = (said === "other_meaning" && meaning.length) || (toned && !CHANGED.includes(verdict)) ? [] : [t("verdicts")[said]];
  const read = (fluency ?? 1) < DOUBTFUL ? [t("odd")] : toned ? [t("fluent")] : [];
  return [...own, ...meaning, ...read].join(t("comma"));
}

// "52 of 100: good, a clear rewording, no change of meaning found"
export function inWords(scores, options = {}) {
  if ((scores.spscore ?? null) === null) return t("not_scored");
  const said = verdictOf(scores, options);
  return options.toned ? said : `${t("of_all")(points(scores.spscore))}${t("colon")}${said}`;
}

export const whole = (scores, options = {}) => make("p", { class: `whole ${doubt(scores, options.sentences)}` }, inWords(scores, options));

// The levels side by side, each with its points and what it is; a mark shows where the score lies.
export function scale(score) {
  const bounds = [0, ...known.levels.slice(1), 1];
  const level = bounds.slice(1, -1).filter((bound) => score >= bound).length;
  const mark = make("i", { "aria-hidden": "true" });
  const within = Math.min(1, (score - bounds[level]) / (bounds[level + 1] - bounds[level]));
  mark.style.left = `${(100 * (level + within)) / (bounds.length - 1)}%`;
  const zones = t("levels").map(([name, what], k) => {
    const range = `${points(bounds[k])}–${points(bounds[k + 1]) - (k < bounds.length - 2 ? 1 : 0)}`;
    return make("li", k === level ? { class: "here" } : {}, make("b", {}, name), " ", make("span", {}, range), " ", make("span", {}, what));
  });
  return make("div", { class: "scale" }, mark, make("ol", { "aria-label": t("scale") }, ...zones));
}

// Why texts have no scores; of those that are too long, how long they are and may be; which of them has no Chinese.
export function unscored(reason, ...given) {
  const said = t("reasons")[reason] ?? reason;
  if (typeof said !== "function") return said;
  const length = Math.max(...given.map((own) => [...own.trim()].length));
  const without = given.length > 1 ? given.reduce((sum, own, k) => sum + (HAN.test(own) ? 0 : k + 1), 0) : 0;
  return said({ length, longest: known.longest, without });
}

// The segments of a side; pointing at one shows its partner on the other side.
export function sentence(segments, others) {
  const line = make("p", { class: "sentence", lang: "zh" });
  line.spans = segments.map(({ kind, partner, text }, k) => {
    const span = make("span", { class: kind }, text);
    if (kind !== "same") span.title = t(kind);
    if (partner !== null && kind !== "same") {
      const show = (on) => others()?.spans[segments[k].partner]?.classList.toggle("partner", on);
      span.addEventListener("mouseenter", () => show(true));
      span.addEventListener("mouseleave", () => show(false));
    }
    return span;
  });
  line.append(...line.spans);
  return line;
}

export function markedPair(changes) {
  const lines = {};
  lines.source = sentence(changes.source, () => lines.paraphrase);
  lines.paraphrase = sentence(changes.paraphrase, () => lines.source);
  return lines;
}

// Places of a term in a line, as ranges of the document.
function places(line, term) {
  const text = line.textContent;
  const nodes = [];
  const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
  for (let at = 0; walker.nextNode(); at += walker.currentNode.length) nodes.push([at, walker.currentNode]);
  const point = (offset) => {
    const [at, node] = nodes.findLast(([start]) => start <= offset) ?? nodes[0];
    return [node, offset - at];
  };
  const found = [];
  for (let k = text.indexOf(term); k >= 0; k = text.indexOf(term, k + term.length)) {
    const range = document.createRange();
    range.setStart(...point(k));
    range.setEnd(...point(k + term.length));
    found.push(range);
  }
  return found;
}

// Whether neither a bar nor a mark contradicts a reason.
function holds(text, { structure, meaning, changes }) {
  const moved = [...(changes?.source ?? []), ...(changes?.paraphrase ?? [])].some(({ kind }) => kind === "moved");
  if (/hardly reordered:/.test(text)) return points(structure) <= REORDERED && !moved;
  return !/too little in common/.test(text) || (meaning < DOUBTFUL && (!text.startsWith("structure") || points(structure) <= REORDERED));
}

// Each judgement with its bar, and below it what pulls it down. lines: where the reasons are shown; toned: how much
// changed needs no reasons.
export function judgements(scores, lines = [], toned = false) {
  const counts = ({ judgement }) => !toned || ["meaning", "fluency"].includes(judgement);
  const said = (scores.reasons ?? []).filter((text) => holds(text, scores)).map(reason).filter(counts);
  return make(
    "div",
    { class: "judgements" },
    ...JUDGEMENTS.filter((name) => name in scores).map((name) => {
      const value = number(scores[name]);
      const bar = make("i");
      bar.style.width = `${100 * (scores[name] ?? 0)}%`;
      const own = said.filter((one) => one.judgement === name).map((one) => make("li", {}, named(one, lines)));
      return make(
        "div",
        { class: `judgement ${name === "meaning" ? doubt(scores) : ""}` },
        make("span", {}, t(name)),
        make("b", {}, value),
        make("div", { class: "bar", role: "meter", "aria-label": t(name), "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": String(points(scores[name] ?? 0)) }, bar),
        own.length ? make("ul", { class: "reasons", "aria-label": `${t("why")}${t("colon")}${t(name)}` }, ...own) : null,
      );
    }),
  );
}

// A reason; pointed at or focused, its words are marked in the sentences.
function named({ text, terms }, lines) {
  if (!terms.length || !lines.length) return make("span", {}, text);
  const show = () => {
    const ranges = lines.flatMap((line) => terms.flatMap((term) => places(line, term)));
    if (CSS.highlights) CSS.highlights.set("reason", new Highlight(...ranges));
  };
  const hide = () => CSS.highlights?.delete("reason");
  return make("button", { type: "button", class: "reason", on: { mouseenter: show, focus: show, mouseleave: hide, blur: hide } }, text);
}

export const note = (text) => make("p", { class: "notes" }, text);

// A scored pair whole. given: its texts; explained: with the levels and the legend; number: its place in a text, whose
// own card has the scored sentences.
export function card(scores, given, { explained = true, sentences = [], number: place = 0 } = {}) {
  const why = scores.reason ? note(unscored(scores.reason, given.source, given.paraphrase)) : null;
  const head = place ? make("p", { class: "side" }, t("nth")(place)) : null;
  if (scores.spscore === null) return make("article", { class: "card" }, head, why);
  const { source, paraphrase } = markedPair(scores.changes);
  return make(
    "article",
    { class: "card" },
    head,
    whole(scores, { sentences }),
    explained ? scale(scores.spscore) : null,
    why,
    judgements(scores, [source, paraphrase]),
    make("p", { class: "side" }, t("source")),
    source,
    make("p", { class: "side" }, t("paraphrase")),
    paraphrase,
    explained ? legend() : null,
  );
}
