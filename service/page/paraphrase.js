// The part that writes: text in, candidates for each sentence out, one request a sentence so that the first is soon there.

import { latest, post } from "./api.js";
import { at, button, debounced, make, sentencesOf } from "./dom.js";
import { onLanguage, t } from "./i18n.js";
import { judgements, legend, markedPair, note, unscored, whole } from "./judged.js";
import { during, show } from "./trouble.js";

const LIGHT = ["near_copy", "poor", "light"];
const LITTLE = 0.3; // of structure
// News, chat and law, one at each click.
const EXAMPLES = [
  "受台风影响，原定本周六举行的马拉松比赛推迟到下周日，已经报名的选手可以申请退款。",
  "我今天实在太累了，晚饭就不做了，咱们点个外卖吧。",
  "承租人应当按照约定的期限支付租金，逾期不支付的，出租人可以解除合同。",
];
let example = 0;
let shown = [];
let expected = 0; // how many results the text will have
let about = {};

export function start(part) {
  about = part;
  at("count").max = about.n;
  at("degree").addEventListener("input", nameDegree);
  onLanguage(nameDegree);
  onLanguage(nameTones);
  at("tone").addEventListener("change", () => (at("degree").disabled = Boolean(at("tone").value)));
  onLanguage(render);
  onLanguage(() => (at("card").textContent = about[t("card")] || about.card || about.name));
  let stop = new AbortController();
  at("paraphrase-cancel").addEventListener("click", () => stop.abort());
  at("texts").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("paraphrase-form").requestSubmit();
  });
  at("paraphrase-example").addEventListener("click", () => {
    if (!at("paraphrase-cancel").hidden) return; // it is at work
    at("texts").value = EXAMPLES[example++ % EXAMPLES.length];
    at("paraphrase-form").requestSubmit();
  });
  at("paraphrase-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!at("paraphrase-cancel").hidden) return; // it is at work already
    stop = new AbortController();
    const sentences = sentencesOf(at("texts").value);
    const asked = {
      n: Number(at("count").value),
      degree: Number(at("degree").value),
      tone: at("tone").value || null,
      keep: at("keep").value.split(/[,，、;；]/).map((term) => term.trim()).filter(Boolean),
      explain: true,
      changes: true,
    };
    const cancel = at("paraphrase-cancel");
    cancel.hidden = false;
    shown = [];
    expected = sentences.length;
    render();
    during(event.submitter ?? at("paraphrase-form").querySelector(".main"), at("paraphrase-status"), async () => {
      if (!expected) throw new Error(t("missing")([t("sentences")]));
      for (const [k, text] of sentences.entries()) {
        at("paraphrase-status").textContent = `${t("working")} ${t("progress")(k, sentences.length)}`;
        const answer = await post("/v1/paraphrase", { text, ...asked }, stop.signal);
        const own = answer.results.map((one) => ({ ...one, n: asked.n, toned: Boolean(asked.tone) }));
        shown.push(...own);
        at("paraphrase-results").append(...own.map(result));
        renderNotes();
        if (!k) inView();
      }
      render();
      return t("done")(sentences.length);
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

function nameTones() {
  const chosen = at("tone").value;
  const option = (value, name) => Object.assign(make("option", { value }, name), { selected: value === chosen });
  at("tone").replaceChildren(option("", t("as_it_is")), ...Object.entries(t("tones")).map(([value, name]) => option(value, name)));
}

// What holds for all results, once; a term is absent if no sentence of the text has it.
function renderNotes() {
  const absent = shown.length && shown.length === expected ? shown[0].absent.filter((term) => shown.every((own) => own.absent.includes(term))) : [];
  const notes = [shown.some((own) => own.candidates.length) ? t("check") : "", absent.length ? t("absent")(absent) : ""].filter(Boolean);
  at("paraphrase-legend").replaceChildren(...notes.map(note), ...(shown.length ? [legend()] : []));
}

function render() {
  renderNotes();
  at("paraphrase-results").replaceChildren(...(shown.length > 1 ? [wholeText()] : []), ...shown.map(result));
}

// The text with the best candidate of each sentence, and the sentence itself where there is none.
function wholeText() {
  const text = make("p", { class: "sentence", lang: "zh" });
  const fill = () => text.replaceChildren(...shown.map(({ source, candidates: [best] }) => make("span", { class: best ? "same" : "same kept" }, best ? best.text : source)));
  fill();
  return make("article", { class: "card" }, make("div", { class: "head" }, make("p", { class: "whole" }, t("whole_text")), copier(() => text.textContent)), text);
}

function copier(textOf, ...others) {
  const status = make("span", { class: "busy", role: "status" });
  const copy = async () => {
    await navigator.clipboard.writeText(textOf());
    status.textContent = t("copied");
  };
  return make("span", { class: "buttons" }, status, button(t("copy"), copy), ...others);
}

function result(own) {
  const light = own.candidates.length && !own.toned && own.candidates.every((one) => LIGHT.includes(one.verdict) && one.structure < LITTLE);
  const notes = [
    own.reason ? unscored(own.reason, own.source) : null,
    own.candidates.length && own.candidates.length < own.n ? t("fewer")(own.n, own.candidates.length) : null,
    light ? t("only_light") : null,
    t("left_out")(own.left_out) || null,
  ].filter(Boolean);
  return make("section", {}, make("h2", { lang: "zh" }, own.source), ...notes.map(note), ...own.candidates.map((one) => card(own.source, one, own.toned)));
}

function card(source, candidate, toned) {
  const article = make("article", { class: "card" });
  const fill = (edited = null) => {
    const lines = markedPair(candidate.changes);
    article.replaceChildren(
      make("div", { class: "head" }, whole(candidate, { toned }), copier(() => candidate.text, button(t("edit"), edit))),
      ...(edited ? [edited] : []),
      lines.paraphrase,
      make("p", { class: "side" }, t("source")),
      lines.source,
      judgements(candidate, [lines.source, lines.paraphrase], toned),
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
        Object.assign(candidate, scores, { text: box.value });
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
