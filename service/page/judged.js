// A judged pair on the page: marked sentences, bars, reasons.

import { make } from "./dom.js";
import { reason, t } from "./i18n.js";

export const JUDGEMENTS = ["structure", "synonyms", "meaning", "fluency"];
const KINDS = ["moved", "replaced", "added", "lost"];

export const legend = () =>
  KINDS.map((kind) => make("span", {}, make("span", { class: kind }, t(kind))));

export function number(value, digits = 2) {
  return value === null || value === undefined ? "–" : value.toFixed(digits);
}

// The segments of a side; pointing at one shows its partner on the other side.
export function sentence(segments, others) {
  const line = make("p", { class: "sentence", lang: "zh" });
  const spans = segments.map((segment) => {
    const span = make("span", { class: segment.kind }, segment.text);
    if (segment.kind !== "same") span.title = t(segment.kind);
    return span;
  });
  line.append(...spans);
  line.spans = spans;
  spans.forEach((span, k) => {
    const { partner, kind } = segments[k];
    if (partner === null || kind === "same") return;
    const show = (on) => others()?.spans[partner].classList.toggle("partner", on);
    span.addEventListener("mouseenter", () => show(true));
    span.addEventListener("mouseleave", () => show(false));
  });
  return line;
}

export function markedPair(changes) {
  const lines = {};
  lines.source = sentence(changes.source, () => lines.paraphrase);
  lines.paraphrase = sentence(changes.paraphrase, () => lines.source);
  return lines;
}

export function bars(scores) {
  return make(
    "div",
    { class: "judgements" },
    ...JUDGEMENTS.map((name) =>
      make(
        "div",
        { class: "judgement" },
        make("span", {}, t(name)),
        make("b", {}, number(scores[name])),
        make("meter", { min: "0", max: "1", value: String(scores[name] ?? 0), "aria-label": `${t(name)} ${number(scores[name])}` }),
      ),
    ),
  );
}

export const whole = (scores) =>
  make("span", { class: "whole" }, number(scores.spscore, 3), make("small", {}, t("spscore")));

export function reasons(list) {
  if (!list?.length) return null;
  return make("ul", { class: "reasons", "aria-label": t("why") }, ...list.map((own) => make("li", {}, reason(own))));
}

export const note = (text) => make("p", { class: "notes" }, text);
