// The part that judges one pair, and says why.

import { post } from "./api.js";
import { at, make } from "./dom.js";
import { onLanguage, t } from "./i18n.js";
import { bars, legend, markedPair, note, reasons, whole } from "./judged.js";
import { during } from "./trouble.js";

const EXAMPLE = [
  "她嘴上说不在意，转过身去，眼泪却断了线似的往下掉。",
  "她说她不在乎，但是当她转过身来时，她的眼泪止不住地流了下来。",
];
let shown = null;

export function start() {
  onLanguage(render);
  at("score-example").addEventListener("click", () => {
    [at("source").value, at("rewrite").value] = EXAMPLE;
    at("score-form").requestSubmit();
  });
  at("score-swap").addEventListener("click", () => {
    [at("source").value, at("rewrite").value] = [at("rewrite").value, at("source").value];
  });
  at("score-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const pair = { source: at("source").value, paraphrase: at("rewrite").value };
    during(at("score-form").querySelector(".main"), at("score-status"), async () => {
      const answer = await post("/v1/score", { pairs: [pair], explain: true, changes: true });
      shown = answer.scores[0];
      render();
    });
  });
}

function render() {
  at("score-result").replaceChildren(...(shown ? result(shown) : []));
}

export function result(score) {
  const why = score.reason ? note(t("reasons")[score.reason]) : null;
  if (score.spscore === null) return [make("article", { class: "card" }, why)];
  const { source, paraphrase } = markedPair(score.changes);
  return [
    make("div", { class: "legend" }, ...legend()),
    make(
      "article",
      { class: "card" },
      make("div", { class: "head" }, whole(score)),
      why,
      bars(score),
      reasons(score.reasons),
      make("p", { class: "side" }, t("source")),
      source,
      make("p", { class: "side" }, t("paraphrase")),
      paraphrase,
    ),
  ];
}
