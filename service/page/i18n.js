// The language of the page: as chosen, or the browser's.

import { TEXTS, errorIn, reasonIn } from "./texts.js";

const KEPT = "gaixie-language";
let language = localStorage.getItem(KEPT) ?? (navigator.language.startsWith("zh") ? "zh" : "en");
const listeners = [];

export const t = (key) => TEXTS[language][key];
export const reason = (text) => reasonIn(language, text);
export const errorText = (text) => errorIn(language, text);
export const onLanguage = (act) => listeners.push(act);

export function applyLanguage() {
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = t(element.dataset.text);
  for (const element of document.querySelectorAll("[data-placeholder]")) element.placeholder = t(element.dataset.placeholder);
  for (const element of document.querySelectorAll("[data-label]")) element.setAttribute("aria-label", t(element.dataset.label));
  for (const act of listeners) act();
}

export function switchLanguage() {
  language = language === "zh" ? "en" : "zh";
  localStorage.setItem(KEPT, language);
  applyLanguage();
}
