// The part that looks at a published run or release.

import { download, get } from "./api.js";
import { at, make, save } from "./dom.js";
import { histogram } from "./histogram.js";
import { onLanguage, t } from "./i18n.js";
import { JUDGEMENTS, number } from "./judged.js";
import { result } from "./score.js";
import { clear, show } from "./trouble.js";

const SCORES = ["spscore", ...JUDGEMENTS];
let about = null;
let rows = [];
let next = null;
let figures = null;

export function start(part) {
  about = part;
  onLanguage(renderForm);
  onLanguage(render);
  at("run-form").addEventListener("submit", (event) => {
    event.preventDefault();
    load();
  });
  at("run-facts").replaceChildren(make("h2", {}, part.name), make("p", { class: "notes" }, part.created ?? ""));
  renderForm();
  load();
}

function select(id, label, options, value) {
  const own = make("select", { id }, ...options.map(([key, text]) => make("option", { value: key }, text)));
  if (value !== undefined) own.value = value;
  return make("div", { class: "field" }, make("label", { for: id }, label), own);
}

function renderForm() {
  const any = ["", t("any")];
  const kept = (name, otherwise = "") => at(`run-${name}`)?.value ?? otherwise;
  const fields = [];
  if (about.origins.length) fields.push(select("run-origin", t("origin"), [any, ...about.origins.map((own) => [own, own])], kept("origin")));
  if (about.stages.length) fields.push(select("run-stage", t("stage"), [any, ...about.stages.map((own) => [String(own), String(own)])], kept("stage")));
  fields.push(select("run-sort", t("sort"), about.scores.map((own) => [own, t(own)]), kept("sort", about.scores[0])));
  fields.push(select("run-order", t("order"), [["asc", t("up")], ["desc", t("down")]], kept("order", "desc")));
  fields.push(
    make("div", { class: "field" }, make("label", { for: "run-text" }, t("text")), make("input", { id: "run-text", lang: "zh", value: kept("text") })),
  );
  for (const name of about.scores) {
    const bound = (side) =>
      make("input", { id: `run-${side}_${name}`, type: "number", min: "0", max: "1", step: "any", placeholder: t(side === "min" ? "from" : "to"), "aria-label": `${t(name)} ${t(side === "min" ? "from" : "to")}`, value: kept(`${side}_${name}`) });
    fields.push(make("fieldset", { class: "field" }, make("legend", {}, t(name)), make("div", { class: "range" }, bound("min"), bound("max"))));
  }
  const button = (text, act) => make("button", { type: "button", on: { click: act } }, text);
  at("run-form").replaceChildren(
    make("div", { class: "fields many" }, ...fields),
    make(
      "div",
      { class: "actions" },
      make("button", { type: "submit", class: "main" }, t("filter")),
      button(t("sample"), () => load("sample")),
      button(t("export_csv"), () => keep("csv")),
      button(t("export_parquet"), () => keep("parquet")),
      make("span", { class: "busy", role: "status", id: "run-status" }, figures ? t("pairs")(figures.count.toLocaleString()) : ""),
    ),
  );
}

function filters() {
  const query = new URLSearchParams();
  for (const name of ["origin", "stage", "text", ...about.scores.flatMap((own) => [`min_${own}`, `max_${own}`])]) {
    const value = at(`run-${name}`)?.value;
    if (value) query.set(name, value);
  }
  return query;
}

export async function load(how = "pairs", more = false) {
  clear();
  const say = (text) => (at("run-status").textContent = text); // the form may be made anew meanwhile
  say(t("working"));
  try {
    const query = filters();
    if (!more) {
      const own = new URLSearchParams(query);
      own.set("column", at("run-sort").value);
      figures = { column: at("run-sort").value, ...(await get(`/v1/run/histogram?${own}`)) };
    }
    if (how === "sample") query.set("seed", String(Math.floor(Math.random() * 1e9)));
    else {
      query.set("sort", at("run-sort").value);
      query.set("order", at("run-order").value);
      if (more) query.set("after", next);
    }
    const answer = await get(`/v1/run/${how}?${query}`);
    rows = more ? [...rows, ...answer.rows] : answer.rows;
    next = answer.next ?? null;
    say(t("pairs")(figures.count.toLocaleString()));
    render();
  } catch (error) {
    say("");
    show(error);
  }
}

async function keep(format) {
  clear();
  try {
    const query = filters();
    query.set("format", format);
    save(await download(`/v1/run/export?${query}`), `${about.name}-selection.${format}`);
  } catch (error) {
    show(error);
  }
}

function render() {
  if (!figures) return;
  const names = SCORES.filter((name) => about.scores.includes(name));
  at("run-figures").replaceChildren(histogram(figures.column, figures.counts));
  const line = (row) => {
    const open = make("button", { type: "button", "aria-expanded": "false", on: { click: () => detail(row, open) } }, t("details"));
    return make(
      "tr",
      {},
      make("td", { lang: "zh" }, make("div", { class: "text" }, row.source)),
      make("td", { lang: "zh" }, make("div", { class: "text" }, row.paraphrase)),
      ...names.map((name) => make("td", { class: "number" }, number(row[name]))),
      make("td", {}, [row.origin, row.stage ?? row.split].filter((own) => own !== undefined && own !== null).join(" · ")),
      make("td", {}, open),
    );
  };
  const body = rows.length
    ? make(
        "div",
        { class: "scroll", tabIndex: 0, role: "region", "aria-label": t("tab_run") },
        make(
          "table",
          {},
          make("caption", {}, t("rows_shown")(rows.length.toLocaleString(), figures.count.toLocaleString())),
          make("thead", {}, make("tr", {}, ...["source", "paraphrase", ...names].map((own, k) => make("th", { scope: "col", class: k > 1 ? "number" : "" }, t(own))), make("th", { scope: "col" }, `${t("origin")} · ${t("stage")}`), make("td", {}))),
          make("tbody", {}, ...rows.map(line)),
        ),
      )
    : make("p", {}, t("no_rows"));
  const more = next ? make("div", { class: "actions" }, make("button", { type: "button", id: "run-more", on: { click: () => load("pairs", true) } }, t("more"))) : null;
  at("run-rows").replaceChildren(body, ...(more ? [more] : []));
}

async function detail(row, button) {
  const line = button.closest("tr");
  if (button.getAttribute("aria-expanded") === "true") {
    line.nextSibling.remove();
    button.setAttribute("aria-expanded", "false");
    return;
  }
  try {
    const own = await get(`/v1/run/pair/${encodeURIComponent(row.pair_id)}`);
    line.after(make("tr", { class: "detail" }, make("td", { colSpan: line.cells.length }, ...result(own))));
    button.setAttribute("aria-expanded", "true");
  } catch (error) {
    show(error);
  }
}
