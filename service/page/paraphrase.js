// The part that writes: sentences in, candidates out, one request a sentence so that the first is soon there.

import { post } from "./api.js";
import { at, make } from "./dom.js";
import { onLanguage, t } from "./i18n.js";
import { bars, legend, markedPair, note, reasons, whole } from "./judged.js";
import { during } from "./trouble.js";

let shown = [];

export function start(about) {
  at("count").max = about.n;
  at("degree-field").hidden = !about.degrees;
  at("degree").addEventListener("input", nameDegree);
  onLanguage(nameDegree);
  onLanguage(render);
  let stop = new AbortController();
  at("paraphrase-cancel").addEventListener("click", () => stop.abort());
  at("paraphrase-form").addEventListener("submit", (event) => {
    event.preventDefault();
    stop = new AbortController();
    const lines = at("texts").value.split("\n").map((line) => line.trim()).filter(Boolean);
    const asked = {
      n: Number(at("count").value),
      degree: about.degrees ? Number(at("degree").value) : null,
      keep: at("keep").value.split(/[,，、;；]/).map((term) => term.trim()).filter(Boolean),
      explain: true,
      changes: true,
    };
    const cancel = at("paraphrase-cancel");
    cancel.hidden = false;
    shown = [];
    render();
    during(event.submitter ?? at("paraphrase-form").querySelector(".main"), at("paraphrase-status"), async () => {
      for (const text of lines) {
        const answer = await post("/v1/paraphrase", { text, ...asked }, stop.signal);
        shown.push(...answer.results);
        render();
      }
      return t("done")(lines.length);
    }).finally(() => (cancel.hidden = true));
  });
}

function nameDegree() {
  at("degree-name").textContent = `${at("degree").value} · ${t("degrees")[at("degree").value - 1]}`;
  at("degree").setAttribute("aria-valuetext", at("degree-name").textContent);
}

function render() {
  document.querySelector("[data-legend]").replaceChildren(...(shown.length ? legend() : []));
  at("paraphrase-results").replaceChildren(...shown.map(result));
}

function result(own) {
  const cards = own.candidates.map(card);
  const { copies, lost_a_kept_term: lost } = own.dropped;
  const notes = [
    own.reason ? t("reasons")[own.reason] : null,
    own.candidates.length || own.reason ? null : t("none_left"),
    t("dropped")(copies, lost) || null,
  ].filter(Boolean);
  return make("section", {}, make("h2", { lang: "zh" }, own.source), ...cards, ...notes.map(note));
}

function card(candidate) {
  const status = make("span", { class: "busy", role: "status" });
  const copy = async () => {
    await navigator.clipboard.writeText(candidate.text);
    status.textContent = t("copied");
  };
  const { source, paraphrase } = markedPair(candidate.changes);
  const kept = candidate.entities_kept;
  return make(
    "article",
    { class: "card" },
    make("div", { class: "head" }, whole(candidate), make("span", {}, status, make("button", { type: "button", on: { click: copy } }, t("copy")))),
    paraphrase,
    make("p", { class: "side" }, t("source")),
    source,
    bars(candidate),
    reasons(candidate.reasons),
    kept === null ? null : note(t("entities")(Math.round(kept))),
  );
}
