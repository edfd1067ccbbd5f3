// Tabs after the ARIA pattern: arrows move between them, Home and End to the ends.

import { at, make } from "./dom.js";
import { onLanguage, t } from "./i18n.js";

export function makeTabs(names) {
  const list = at("tabs");
  const tabs = names.map((name) =>
    make("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": name, on: { click: () => choose(name) } }),
  );
  list.append(...tabs);
  list.addEventListener("keydown", (event) => {
    const now = tabs.findIndex((tab) => tab.getAttribute("aria-selected") === "true");
    const next = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const name = names[(next + tabs.length) % tabs.length];
    choose(name);
    at(`tab-${name}`).focus();
  });

  function choose(name) {
    for (const tab of tabs) {
      const chosen = tab.id === `tab-${name}`;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      at(tab.getAttribute("aria-controls")).hidden = !chosen;
    }
    history.replaceState(null, "", `#${name}`);
  }

  onLanguage(() => names.forEach((name) => (at(`tab-${name}`).textContent = t(`tab_${name}`))));
  const asked = location.hash.slice(1);
  choose(names.includes(asked) ? asked : names[0]);
}
