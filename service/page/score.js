// The part that scores one pair while it is typed, and says why; of texts with as many sentences, each pair too.

import { latest, post } from "./api.js";
import { at, button, debounced, keep, kept, make, sentencesOf } from "./dom.js";
import { onLanguage, t } from "./i18n.js";
import { JUDGEMENTS, card, inWords, note, number } from "./judged.js";
import { onQuery, query, setQuery } from "./tabs.js";
import { clear, during, show } from "./trouble.js";

const EXAMPLE = [
  "她嘴上说不在意，转过身去，眼泪却断了线似的往下掉。",
  "她说她不在乎，但是当她转过身来时，她的眼泪止不住地流了下来。",
];
// One of each level, from examples/pairs.jsonl.
const LEVELS = [
  ["麻烦你帮我收一下快递，我大概晚上七点半才能到家。", "麻烦你帮我收一下快递，我大概要晚上七点半才能到家。"],
  ["这部手机我用了四年，除了电池不太耐用，别的都没什么问题。", "这部手机陪伴了我四年，除了电池不太经用以外，其他方面都没有什么问题。"],
  ["他把一生的积蓄都换成了石头，想在山顶上盖一座谁也推不倒的房子。", "一辈子攒下的钱，他全拿去换了石头，一心要在山顶起一座推不倒的屋。"],
  ["胡同是北方城市特有的街巷形式，元代开始大量出现，至今仍是许多老居民生活的地方。", "自元代起，一种名为“胡同”的街巷在北方城市大量涌现，直到今天，不少老住户依旧生活其间。"],
];
const HISTORY = "gaixie-history";
const REMEMBERED = 20;
const LEAST = 8; // characters of such a sentence
const MOST = 50; // sentences that are scored one by one
const asked = latest();
let example = 0; // the next of the levels
let shown = null;
let each = []; // the pairs of sentences, scored
let short = []; // the numbers of those that are too short for it

const pair = () => ({ source: at("source").value, paraphrase: at("rewrite").value });
const whole = ({ source, paraphrase }) => Boolean(source.trim() && paraphrase.trim());

export function start() {
  onLanguage(render);
  onLanguage(renderHistory);
  onLanguage(renderLevels);
  const later = debounced(() => ask().catch(show));
  for (const id of ["source", "rewrite"]) {
    at(id).addEventListener("input", () => {
      stale();
      later();
    });
    at(id).addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("score-form").requestSubmit();
    });
  }
  at("score-example").addEventListener("click", () => use(...LEVELS[example++ % LEVELS.length]));
  at("score-swap").addEventListener("click", () => use(at("rewrite").value, at("source").value));
  at("score-link").addEventListener("click", () => copy(location.href));
  at("score-copy").addEventListener("click", () => copy(asText()));
  at("history-clear").addEventListener("click", () => {
    keep(HISTORY, []);
    renderHistory();
  });
  at("score-form").addEventListener("submit", (event) => {
    event.preventDefault();
    during(at("score-form").querySelector(".main"), at("score-status"), async () => {
      const missing = ["source", "paraphrase"].filter((side) => !pair()[side].trim());
      if (missing.length) throw new Error(t("missing")(missing.map(t)));
      await ask();
      remember();
    });
  });
  onQuery("score", fromAddress);
}

// The pair of the address, or an example that is scored already.
function fromAddress() {
  const own = query();
  if (own.has("a")) {
    if (own.get("a") !== at("source").value || own.get("b") !== at("rewrite").value) use(own.get("a"), own.get("b") ?? "");
  } else if (!whole(pair())) use(...EXAMPLE);
}

function use(source, paraphrase) {
  [at("source").value, at("rewrite").value] = [source, paraphrase];
  stale();
  ask().catch(show);
}

function stale() {
  asked();
  at("score-status").textContent = "";
  at("score-result").classList.toggle("stale", shown !== null);
  if (!whole(pair())) {
    shown = null;
    render();
  }
}

// The sentences side by side, if both texts have several, and as many: [those to be scored, the numbers of short ones].
function sentencePairs({ source, paraphrase }) {
  const [sources, paraphrases] = [sentencesOf(source), sentencesOf(paraphrase)];
  if (sources.length < 2 || sources.length !== paraphrases.length || sources.length > MOST) return [[], []];
  const all = sources.map((own, k) => ({ source: own, paraphrase: paraphrases[k], number: k + 1 }));
  const fits = (own) => [own.source, own.paraphrase].every((text) => [...text].length >= LEAST);
  return [all.filter(fits), all.filter((own) => !fits(own)).map((own) => own.number)];
}

async function ask() {
  const given = pair();
  if (!whole(given)) return;
  try {
    const [sentences, left] = sentencePairs(given);
    const all = [given, ...sentences];
    const pairs = all.map(({ source, paraphrase }) => ({ source, paraphrase }));
    const answer = await post("/v1/score", { pairs, explain: true, changes: true }, asked());
    [shown, ...each] = answer.scores.map((scores, k) => ({ ...scores, pair: pairs[k], number: all[k].number }));
    short = left;
    at("score-status").textContent = "";
    clear();
    render();
    setQuery("score", new URLSearchParams({ a: given.source, b: given.paraphrase }));
  } catch (error) {
    if (error.name === "AbortError") return;
    shown = null;
    render();
    throw error;
  }
}

function render() {
  at("score-result").classList.remove("stale");
  const single = () => [
    make("h2", {}, t("each")),
    ...(short.length ? [note(t("too_short_alone")(short))] : []),
    ...each.map((own) => card(own, own.pair, { explained: false, number: own.number })),
  ];
  at("score-result").replaceChildren(...(shown ? [card(shown, shown.pair, { sentences: each })] : []), ...(shown && each.length ? single() : []));
  for (const id of ["score-link", "score-copy"]) at(id).hidden = !shown;
}

async function copy(text) {
  await navigator.clipboard.writeText(text);
  at("score-status").textContent = t("copied");
}

function asText() {
  const judged = JUDGEMENTS.map((name) => `${t(name)} ${number(shown[name])}`);
  return [shown.pair.source, shown.pair.paraphrase, inWords(shown, { sentences: each }), judged.join("  "), at("signature").textContent].join("\n");
}

function renderLevels() {
  at("score-examples").replaceChildren(
    ...LEVELS.map((own, k) => make("li", {}, t("levels")[k][0], t("colon"), button(own[1], () => use(...own), { class: "plain try", lang: "zh" }))),
  );
}

function remember() {
  if (!shown || shown.spscore === null) return;
  const own = { ...shown.pair, spscore: shown.spscore };
  const others = kept(HISTORY, []).filter((one) => one.source !== own.source || one.paraphrase !== own.paraphrase);
  keep(HISTORY, [own, ...others].slice(0, REMEMBERED));
  renderHistory();
}

function renderHistory() {
  const pairs = kept(HISTORY, []);
  at("history").hidden = !pairs.length;
  at("history-pairs").replaceChildren(
    ...pairs.map((own) =>
      make("li", {}, button(`${number(own.spscore)}  ${own.source} → ${own.paraphrase}`, () => use(own.source, own.paraphrase), { class: "plain", lang: "zh" })),
    ),
  );
}

