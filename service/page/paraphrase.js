// The part that writes: sentences in, candidates out, one request a sentence so that the first is soon there.

import { latest, post } from "./api.js";
import { at, button, debounced, make } from "./dom.js";
import { onLanguage, t } from "./i18n.js";
import { judgements, legend, markedPair, note, whole } from "./judged.js";
import { during, show } from "./trouble.js";

let shown = [];
let about = {};

export function start(part) {
  about = part;
  at("count").max = about.n;
  at("degree-field").hidden = !about.degrees;
  at("degree").addEventListener("input", nameDegree);
  onLanguage(nameDegree);
  onLanguage(render);
  onLanguage(() => (at("card").textContent = about[t("card")] || about.card || about.name));
  let stop = new AbortController();
  at("paraphrase-cancel").addEventListener("click", () => stop.abort());
  at("texts").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("paraphrase-form").requestSubmit();
  });
  at("paraphrase-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!at("paraphrase-cancel").hidden) return; // it is at work already
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
      for (const [k, text] of lines.entries()) {
        at("paraphrase-status").textContent = `${t("working")} ${t("progress")(k, lines.length)}`;
        const answer = await post("/v1/paraphrase", { text, ...asked }, stop.signal);
        const at_ = shown.length;
        shown.push(...answer.results);
        at("paraphrase-results").append(...shown.slice(at_).map(result));
        at("paraphrase-legend").replaceChildren(legend());
        if (!k) inView();
      }
      return t("done")(lines.length);
    }).finally(() => (cancel.hidden = true));
  });
}

// On a phone the form fills the window: the results come into view.
function inView() {
  const results = at("paraphrase-results");
  if (results.getBoundingClientRect().top > innerHeight * 0.7) results.scrollIntoView({ block: "start" });
}

function nameDegree() {
  at("degree-name").textContent = `${at("degree").value} · ${t("degrees")[at("degree").value - 1]}`;
  at("degree").setAttribute("aria-valuetext", at("degree-name").textContent);
}

function render() {
  at("paraphrase-legend").replaceChildren(...(shown.length ? [legend()] : []));
  at("paraphrase-results").replaceChildren(...shown.map(result));
}

function result(own) {
  const notes = [
    own.reason ? t("reasons")[own.reason] : null,
    own.candidates.length || own.reason ? null : t("none_left"),
    t("dropped")(own.dropped) || null,
    own.absent?.length ? t("absent")(own.absent) : null,
  ].filter(Boolean);
  return make("section", {}, make("h2", { lang: "zh" }, own.source), ...own.candidates.map((one) => card(own.source, one)), ...notes.map(note));
}

function card(source, candidate) {
  const article = make("article", { class: "card" });
  const status = make("span", { class: "busy", role: "status" });
  const copy = async () => {
    await navigator.clipboard.writeText(candidate.text);
    status.textContent = t("copied");
  };
  const fill = (edited = null) => {
    const lines = markedPair(candidate.changes);
    const kept = candidate.entities_kept;
    article.replaceChildren(
      make("div", { class: "head" }, whole(candidate), make("span", { class: "buttons" }, status, button(t("copy"), copy), button(t("edit"), edit))),
      ...(edited ? [edited] : []),
      lines.paraphrase,
      make("p", { class: "side" }, t("source")),
      lines.source,
      judgements(candidate, [lines.source, lines.paraphrase]),
      ...(kept === null || kept === undefined ? [] : [note(t("entities")(Math.round(kept)))]),
    );
  };
  // In place, and its score follows.
  const edit = () => {
    const box = make("textarea", { lang: "zh", rows: "2", "aria-label": t("edit") });
    box.value = candidate.text;
    const asked = latest();
    const follow = debounced(async () => {
      try {
        const given = { source, paraphrase: box.value };
        const answer = await post("/v1/score", { pairs: [given], explain: true, changes: true }, asked());
        const [scores] = answer.scores;
        if (scores.spscore === null) return;
        Object.assign(candidate, scores, { text: box.value, entities_kept: null });
        const [start, end] = [box.selectionStart, box.selectionEnd];
        fill(box);
        box.focus();
        box.setSelectionRange(start, end);
      } catch (error) {
        show(error);
      }
    });
    box.addEventListener("input", follow);
    fill(box);
    box.focus();
  };
  fill();
  return article;
}
