// A scored pair on the page: what the score says in words, the judgements with their reasons, marked sentences.

import { make } from "./dom.js";
import { reason, t } from "./i18n.js";

export const JUDGEMENTS = ["structure", "synonyms", "meaning", "fluency"];
const KINDS = ["moved", "replaced", "added", "lost"];

export const legend = () =>
  make("p", { class: "legend" }, ...KINDS.map((kind) => make("span", {}, make("span", { class: kind }, t(kind)))));

export function number(value, digits = 2) {
  return value === null || value === undefined ? "–" : value.toFixed(digits);
}

// "about 2.3 of 5: a light rewording, meaning kept"
export function inWords(scores) {
  if (scores.spscore === null || scores.spscore === undefined) return t("not_scored");
  const { meaning, verdict } = scores;
  const parts = [t("verdicts")[verdict]];
  if (verdict !== "other_meaning" && meaning !== undefined) parts.push(t("meanings")[meaning >= 0.8 ? 2 : meaning >= 0.5 ? 1 : 0]);
  if (scores.fluency < 0.5) parts.push(t("odd"));
  const chinese = document.documentElement.lang === "zh";
  return `${t("of_five")((5 * scores.spscore).toFixed(1))}${chinese ? "：" : ": "}${parts.join(chinese ? "，" : ", ")}`;
}

export const whole = (scores) => make("p", { class: "whole" }, inWords(scores));

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

// Each judgement with its bar, and below it what pulls it down. lines: where the reasons are shown.
export function judgements(scores, lines = []) {
  const said = (scores.reasons ?? []).map(reason).filter(Boolean);
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
        { class: "judgement" },
        make("span", {}, t(name)),
        make("b", {}, value),
        make("div", { class: "bar", role: "meter", "aria-label": t(name), "aria-valuemin": "0", "aria-valuemax": "1", "aria-valuenow": String(scores[name] ?? 0) }, bar),
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

// A scored pair whole.
export function card(scores, explained = true) {
  const why = scores.reason ? note(t("reasons")[scores.reason] ?? scores.reason) : null;
  if (scores.spscore === null) return make("article", { class: "card" }, why);
  const { source, paraphrase } = markedPair(scores.changes);
  return make(
    "article",
    { class: "card" },
    whole(scores),
    why,
    judgements(scores, [source, paraphrase]),
    make("p", { class: "side" }, t("source")),
    source,
    make("p", { class: "side" }, t("paraphrase")),
    paraphrase,
    explained ? legend() : null,
  );
}
