// The part that scores one pair while it is typed, and says why; of texts with as many sentences, each pair too.

import { latest, post } from "./api.js";
import { at, button, debounced, keep, kept, make, sentencesOf } from "./dom.js";
import { onLanguage, t } from "./i18n.js";
import { JUDGEMENTS, card, inWords } from "./judged.js";
import { onQuery, query, setQuery } from "./tabs.js";
import { clear, during, show } from "./trouble.js";

const EXAMPLE = [
  "她嘴上说不在意，转过身去，眼泪却断了线似的往下掉。",
  "她说她不在乎，但是当她转过身来时，她的眼泪止不住地流了下来。",
];
const HISTORY = "gaixie-history";
const REMEMBERED = 20;
const MOST = 50; // sentences that are scored one by one
const asked = latest();
let shown = null;
let each = []; // the pairs of sentences, scored

const pair = () => ({ source: at("source").value, paraphrase: at("rewrite").value });
const whole = ({ source, paraphrase }) => Boolean(source.trim() && paraphrase.trim());

export function start() {
  onLanguage(render);
  onLanguage(renderHistory);
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
  at("score-example").addEventListener("click", () => use(...EXAMPLE));
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
      await ask();
      remember();
      return shown ? inWords(shown) : "";
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
  at("score-result").classList.toggle("stale", shown !== null);
  if (!whole(pair())) {
    shown = null;
    render();
  }
}

// The sentences side by side, if both texts have several, and as many.
function sentencePairs({ source, paraphrase }) {
  const [sources, paraphrases] = [sentencesOf(source), sentencesOf(paraphrase)];
  if (sources.length < 2 || sources.length !== paraphrases.length || sources.length > MOST) return [];
  return sources.map((own, k) => ({ source: own, paraphrase: paraphrases[k] }));
}

async function ask() {
  const given = pair();
  if (!whole(given)) return;
  try {
    const answer = await post("/v1/score", { pairs: [given, ...sentencePairs(given)], explain: true, changes: true }, asked());
    [shown, ...each] = answer.scores;
    shown.pair = given;
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
  const single = shown && each.length ? [make("h2", {}, t("each")), ...each.map((own) => card(own, false))] : [];
  at("score-result").replaceChildren(...(shown ? [card(shown)] : []), ...single);
  for (const id of ["score-link", "score-copy"]) at(id).hidden = !shown;
}

async function copy(text) {
  await navigator.clipboard.writeText(text);
  at("score-status").textContent = t("copied");
}

function asText() {
  const judged = JUDGEMENTS.map((name) => `${t(name)} ${(shown[name] ?? 0).toFixed(2)}`);
  return [shown.pair.source, shown.pair.paraphrase, inWords(shown), judged.join("  "), at("signature").textContent].join("\n");
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
      make("li", {}, button(`${(5 * own.spscore).toFixed(1)}  ${own.source} → ${own.paraphrase}`, () => use(own.source, own.paraphrase), { class: "plain", lang: "zh" })),
    ),
  );
}

