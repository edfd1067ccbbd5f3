// The page begins: it asks what the service can do, and shows a tab for each part.

import { get, setToken, token } from "./api.js";
import { at } from "./dom.js";
import { applyLanguage, onLanguage, switchLanguage, t } from "./i18n.js";
import { known } from "./judged.js";
import * as paraphrase from "./paraphrase.js";
import * as run from "./run.js";
import * as score from "./score.js";
import * as table from "./table.js";
import { makeTabs } from "./tabs.js";
import { clear, show } from "./trouble.js";

const THEME = "gaixie-theme";
const dark = () => document.documentElement.dataset.theme === "dark";

function useTheme(name) {
  document.documentElement.dataset.theme = name;
  at("theme").textContent = t(dark() ? "to_light" : "to_dark");
}

const preferred = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
useTheme(localStorage.getItem(THEME) ?? preferred);
at("theme").addEventListener("click", () => {
  useTheme(dark() ? "light" : "dark");
  localStorage.setItem(THEME, document.documentElement.dataset.theme);
});
at("language").addEventListener("click", switchLanguage);
onLanguage(() => {
  at("language").textContent = t("language");
  at("language").lang = document.documentElement.lang === "zh" ? "en" : "zh";
  useTheme(document.documentElement.dataset.theme);
});

function begin({ parts }) {
  if (parts.run) run.start(parts.run);
  if (parts.score) {
    score.start();
    table.start();
  }
  if (parts.paraphrase) paraphrase.start(parts.paraphrase);
  makeTabs([parts.run && "run", parts.score && "score", parts.paraphrase && "paraphrase", parts.score && "table"].filter(Boolean));
  applyLanguage();
}

try {
  const about = await get("/v1/about");
  const { parts } = about;
  Object.assign(known, { levels: parts.score?.levels ?? [], longest: about.limits.max_characters });
  at("signature").textContent = parts.score?.signature ?? parts.run?.signature ?? "";
  onLanguage(() => (at("version").textContent = `Gaixie ${about.version}`));
  const wanting = about.token_needed && !token();
  at("token").hidden = !wanting;
  at("token").addEventListener("submit", (event) => {
    event.preventDefault();
    setToken(at("token-value").value.trim());
    clear();
    at("token").hidden = true;
    dispatchEvent(new PopStateEvent("popstate")); // each part asks again
  });
  begin(about);
} catch (error) {
  applyLanguage();
  show(error);
}
document.body.dataset.ready = "yes";
