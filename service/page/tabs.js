// Tabs after the ARIA pattern: arrows move between them, Home and End to the ends. The address names the tab, so
// that Back works: #score, or with what a part keeps in it, #score?a=…

import { at, make } from "./dom.js";
import { onLanguage, t } from "./i18n.js";

const listeners = {};

export const query = () => new URLSearchParams(location.hash.split("?")[1] ?? "");
export const onQuery = (name, act) => (listeners[name] = act);

// Keeps a part's state in the address. push: whether Back leads to what was there before.
export function setQuery(name, parameters, push = false) {
  const text = parameters.toString();
  const hash = `#${name}${text ? `?${text}` : ""}`;
  if (hash !== location.hash) history[push ? "pushState" : "replaceState"](null, "", hash);
}

export function makeTabs(names) {
  const list = at("tabs");
  const tabs = names.map((name) =>
    make("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": name, on: { click: () => go(name) } }),
  );
  list.append(...tabs);
  list.addEventListener("keydown", (event) => {
    const now = tabs.findIndex((tab) => tab.getAttribute("aria-selected") === "true");
    const next = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const name = names[(next + tabs.length) % tabs.length];
    go(name);
    at(`tab-${name}`).focus();
  });
  const asked = () => {
    const name = location.hash.slice(1).split("?")[0];
    return names.includes(name) ? name : names[0];
  };

  function go(name) {
    if (name === asked() && location.hash) return;
    history.pushState(null, "", `#${name}`);
    choose(name);
  }

  function choose(name) {
    for (const tab of tabs) {
      const chosen = tab.id === `tab-${name}`;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      at(tab.getAttribute("aria-controls")).hidden = !chosen;
    }
    document.body.dataset.tab = name;
    listeners[name]?.();
  }

  onLanguage(() => names.forEach((name) => (at(`tab-${name}`).textContent = t(`tab_${name}`))));
  addEventListener("popstate", () => choose(asked()));
  choose(asked());
}
