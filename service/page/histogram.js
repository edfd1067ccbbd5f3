// Bars of counts, with the numbers for those who do not see them.

import { make } from "./dom.js";
import { t } from "./i18n.js";

export function histogram(name, counts, low = 0, high = 1) {
  const most = Math.max(1, ...counts);
  const step = (high - low) / counts.length;
  const say = counts.map((count, k) => `${(low + k * step).toFixed(2)}: ${count}`).join(", ");
  const bars = counts.map((count, k) => {
    const bar = make("i", { title: `${(low + k * step).toFixed(2)}–${(low + (k + 1) * step).toFixed(2)}: ${count}` });
    bar.style.height = `${(100 * count) / most}%`;
    return bar;
  });
  return make(
    "figure",
    { class: "card" },
    make("figcaption", {}, t("histogram")(t(name) ?? name)),
    make("div", { class: "histogram", role: "img", "aria-label": say }, ...bars),
    make("div", { class: "axis" }, make("span", {}, low.toFixed(1)), make("span", {}, high.toFixed(1))),
  );
}

export function countIn(values, bins = 20) {
  const counts = Array(bins).fill(0);
  for (const value of values) counts[Math.min(bins - 1, Math.floor(value * bins))] += 1;
  return counts;
}
