// Elements without templates: texts are always texts, never markup.

export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (key in element && key !== "list" && typeof value !== "string") element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const at = (id) => document.getElementById(id);
export const button = (text, act, attributes = {}) => make("button", { type: "button", on: { click: act }, ...attributes }, text);

export function save(blob, name) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Cuts a text behind the marks that end a sentence, and at line breaks.
export const sentencesOf = (text) => (text.match(/[^。！？!?…\n]+[。！？!?…]*[”’」』）)]*/g) ?? []).map((own) => own.trim()).filter(Boolean);

// Runs act when nothing was typed for a while.
export function debounced(act, wait = 120) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...given), wait);
  };
}

export function kept(key, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export const keep = (key, value) => localStorage.setItem(key, JSON.stringify(value));
