// Bars of counts, with the numbers for those who do not see them. act: what a click on a bar does with its bounds.

import { make } from "./dom.js";
import { t } from "./i18n.js";

export function histogram(name, counts, act = null) {
  const most = Math.max(1, ...counts);
  const bound = (k) => Number((k / counts.length).toFixed(4));
  const shown = (k) => Number((100 * bound(k)).toFixed(2)); // points of 100
  const bars = counts.map((count, k) => {
    const said = t("between")(shown(k), shown(k + 1), count);
    const bar = make(act ? "button" : "i", { title: said });
    if (act) {
      bar.type = "button";
      bar.setAttribute("aria-label", `${t(name)} ${said}`);
      bar.addEventListener("click", () => act(bound(k), bound(k + 1)));
    }
    const fill = make("span");
    fill.style.height = `${(100 * count) / most}%`;
    bar.append(fill);
    return bar;
  });
  const said = counts.map((count, k) => `${shown(k)}: ${count}`).join(", ");
  return make(
    "figure",
    { class: "card spread" },
    make("figcaption", {}, t("histogram")(t(name))),
    make("div", act ? { class: "histogram" } : { class: "histogram", role: "img", "aria-label": said }, ...bars),
    make("div", { class: "axis" }, make("span", {}, "0"), make("span", {}, "100")),
  );
}

export function countIn(values, bins = 20) {
  const counts = Array(bins).fill(0);
  for (const value of values) counts[Math.min(bins - 1, Math.floor(value * bins))] += 1;
  return counts;
}
