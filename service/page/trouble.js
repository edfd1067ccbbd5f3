// One line above the page says what went wrong; a token that is missing is asked for.

import { at } from "./dom.js";
import { errorText, t } from "./i18n.js";

export function clear() {
  at("trouble").hidden = true;
}

export function show(error) {
  if (error.name === "AbortError") return;
  const line = at("trouble");
  line.textContent = error instanceof TypeError ? t("unreachable") : errorText(error.message);
  line.hidden = false;
  line.scrollIntoView({ block: "nearest" });
  if (error.status === 401) {
    at("token").hidden = false;
    at("token-value").focus();
  }
}

// Runs an action of a form: its button waits, its status says so, an error is shown.
export async function during(button, status, act) {
  clear();
  button.disabled = true;
  status.textContent = t("working");
  try {
    status.textContent = (await act()) ?? "";
  } catch (error) {
    status.textContent = error.name === "AbortError" ? t("cancelled") : "";
    show(error);
  } finally {
    button.disabled = false;
  }
}
