// The part that looks at a published run or release. What is shown, counted, sorted, exported and continued is one
// applied query, which the address keeps; the form only prepares the next one.

import { download, get, latest, token } from "./api.js";
import { at, button, keep, kept, make, save } from "./dom.js";
import { histogram } from "./histogram.js";
import { onLanguage, t } from "./i18n.js";
import { JUDGEMENTS, card, legend, markedPair, number } from "./judged.js";
import { onQuery, query, setQuery } from "./tabs.js";
import { clear, show } from "./trouble.js";

const asked = latest();
let about = null;
let applied = new URLSearchParams();
let rows = [];
let next = null;
let figures = null;

const RATED = 5; // the best rating; on the page, ratings have the scale of the scores
const rating = (rated) => number((rated ?? null) === null ? null : rated / RATED);
const isBound = (name) => /^m(in|ax)_/.test(name);
const store = () => `gaixie-verdicts-${about.name}`;
const names = () => ["origin", "stage", "split", "text", ...about.scores.flatMap((own) => [`min_${own}`, `max_${own}`])];
const filters = () => new URLSearchParams([...applied].filter(([key]) => names().includes(key)));
const sorted = () => applied.get("sort") ?? about.scores[0];
const order = () => applied.get("order") ?? "desc";

export function start(part) {
  about = part;
  applied = query();
  onLanguage(renderForm);
  onLanguage(render);
  onQuery("run", () => {
    if (figures && query().toString() === applied.toString()) return;
    applied = query();
    renderForm();
    load();
  });
  at("run-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const given = (name) => at(`run-${name}`)?.value ?? "";
    // The form has points of 100, the address the numbers of the service.
    apply(Object.fromEntries(names().map((name) => [name, isBound(name) && given(name) !== "" ? Number(given(name)) / 100 : given(name)])), ["seed", "pair"]);
  });
}

// Changes the applied query: Back undoes it.
function apply(changes, without = ["pair"]) {
  const own = new URLSearchParams(applied);
  for (const name of without) own.delete(name);
  for (const [key, value] of Object.entries(changes)) {
    if (value === "" || value === null) own.delete(key);
    else own.set(key, value);
  }
  applied = own;
  setQuery("run", applied, true);
  renderForm();
  load();
}

async function load(more = false) {
  const signal = asked();
  const mine = applied;
  const say = (text) => (at("run-status").textContent = text);
  clear();
  say(t("working"));
  try {
    const [found, answer] = await Promise.all([
      more ? figures : get(`/v1/run/histograms?${filters()}`, signal),
      get(pageOf(mine, more), signal),
    ]);
    if (signal.aborted) return;
    figures = found;
    rows = more ? [...rows, ...answer.rows] : answer.rows;
    next = answer.next ?? null;
    render();
    if (!more && mine.get("pair")) await openLinked(mine.get("pair"), signal);
  } catch (error) {
    if (error.name !== "AbortError") say("");
    if (error.name !== "AbortError" && !more) at("run-rows").replaceChildren(); // the rows were another query's
    show(error);
  }
}

function pageOf(own, more) {
  const parameters = filters();
  parameters.set("changes", "true");
  if (own.has("seed")) {
    parameters.set("seed", own.get("seed"));
    return `/v1/run/pairs?${parameters}`;
  }
  parameters.set("sort", sorted());
  parameters.set("order", order());
  if (more) parameters.set("after", next);
  return `/v1/run/pairs?${parameters}`;
}

function field(id, label, control) {
  control.id = id;
  return make("div", { class: "field" }, make("label", { for: id }, label), control);
}

function choice(name, options) {
  const control = make("select", {}, make("option", { value: "" }, t("any")), ...options.map((own) => make("option", { value: String(own) }, t("origins")[own] ?? String(own))));
  control.value = applied.get(name) ?? "";
  return field(`run-${name}`, t(name), control);
}

function renderForm() {
  const bound = (side, name) =>
    make("input", { id: `run-${side}_${name}`, type: "number", min: "0", max: "100", step: "any", placeholder: t(side === "min" ? "from" : "to"), "aria-label": `${t(name)} ${t(side === "min" ? "from" : "to")}`, value: applied.has(`${side}_${name}`) ? String(Number((100 * applied.get(`${side}_${name}`)).toFixed(4))) : "" });
  const open = at("run-more-filters")?.open ?? false;
  const choices = ["origin", "stage", "split"].filter((name) => about[`${name}s`].length > 0);
  const random = applied.has("seed");
  const draw = () => apply(random ? {} : { seed: Math.floor(Math.random() * 1e9) }, ["seed", "pair"]);
  at("run-form").replaceChildren(
    make(
      "div",
      { class: "toolbar" },
      field("run-text", t("text"), make("input", { lang: "zh", value: applied.get("text") ?? "" })),
      ...choices.map((name) => choice(name, about[`${name}s`])),
      make("div", { class: "buttons" }, make("button", { type: "submit", class: "main" }, t("filter")), button(t("reset"), () => apply(Object.fromEntries(names().map((name) => [name, ""])))), button(random ? t("sorted") : t("sample"), draw)),
    ),
    make(
      "details",
      { id: "run-more-filters", open },
      make("summary", {}, t("filters")),
      make("div", { class: "fields many" }, ...about.scores.map((name) => make("fieldset", { class: "field" }, make("legend", {}, t(name)), make("div", { class: "range" }, bound("min", name), bound("max", name))))),
      make("div", { id: "run-figures", class: "fields many" }),
    ),
  );
  renderFacts();
  renderFigures();
}

function renderFacts() {
  const exported = (format) => async () => {
    const own = filters();
    own.set("format", format);
    const titled = format === "csv" && document.documentElement.lang === "zh";
    // The browser's own download is for any size, but sends no token, and its header is English.
    if (!token() && !titled) return make("a", { href: `/v1/run/export?${own}`, download: "" }).click();
    try {
      const file = await download(`/v1/run/export?${own}`);
      save(titled ? await withTitles(file) : file, `${about.name}-selection.${format}`);
    } catch (error) {
      show(error);
    }
  };
  at("run-facts").replaceChildren(
    make("h2", {}, about.name),
    make("span", { class: "notes" }, (about.created ?? "").slice(0, 10)),
    button(t("export_csv"), exported("csv")),
    button(t("export_parquet"), exported("parquet")),
    make("span", { id: "run-verdicts" }),
  );
  const tier = /\btier:(\w+)/.exec(about.signature ?? "")?.[1] ?? "";
  at("run-about").textContent = [about.columns.includes("stage") && t("about_stage"), about.columns.includes("rated") && t("about_rated"), t("about_tier")(tier)].filter(Boolean).join("");
  renderVerdicts();
}

// The header of a CSV file in the language of the page.
async function withTitles(file) {
  const [header] = (await file.slice(0, 10_000).text()).split("\n", 1);
  const titles = header.replaceAll('"', "").split(",").map((name) => t(name) ?? name);
  const start = 3 + header.length; // 3: the mark of UTF-8, which text() leaves out
  return new Blob(["\ufeff", titles.join(","), file.slice(start)], { type: "text/csv" });
}

function renderVerdicts() {
  const own = Object.values(kept(store(), {}));
  const of = (verdict) => own.filter((one) => one.verdict === verdict).length;
  const lines = () => own.map((one) => `${JSON.stringify(one)}\n`);
  at("run-verdicts").replaceChildren(
    ...(own.length
      ? [make("span", { class: "notes" }, t("sorted_out")(of("keep"), of("reject"))), " ", button(t("export_verdicts"), () => save(new Blob(lines(), { type: "application/jsonl" }), `${about.name}-verdicts.jsonl`))]
      : []),
  );
}

function renderFigures() {
  if (!figures || !at("run-figures")) return;
  at("run-figures").replaceChildren(
    ...Object.entries(figures.counts).map(([name, counts]) => histogram(name, counts, (low, high) => apply({ [`min_${name}`]: low, [`max_${name}`]: high }))),
  );
}

function render() {
  if (!figures) return;
  const random = applied.has("seed");
  at("run-status").textContent = rows.length ? t(random ? "sampled" : "shown")(rows.length, figures.count) : t("pairs")(figures.count);
  renderFacts();
  renderFigures();
  const scores = ["spscore", ...JUDGEMENTS].filter((name) => about.scores.includes(name));
  const extra = [about.columns.includes("rated") && "rated", "origin"].filter(Boolean);
  const head = (name) => {
    if (!about.scores.includes(name)) return make("th", { scope: "col" }, name === "origin" ? `${t("origin")} · ${t("stage")}` : t(name));
    const own = name === sorted() && !random;
    const arrow = own ? (order() === "desc" ? " ↓" : " ↑") : "";
    const sort = () => apply({ sort: name, order: own && order() === "desc" ? "asc" : "desc" }, ["seed", "pair"]);
    return make("th", { scope: "col", class: "number", "aria-sort": own ? (order() === "desc" ? "descending" : "ascending") : "none" }, button(t(name) + arrow, sort));
  };
  const pair = make("th", { scope: "col" }, `${t("source")} · ${t("paraphrase")}`);
  const table = make(
    "table",
    { class: "rows" },
    make("caption", { class: "unseen" }, t("tab_run")),
    make("thead", {}, make("tr", {}, head("spscore"), pair, ...scores.slice(1).map(head), ...extra.map(head), make("th", { scope: "col" }, t("verdict")))),
    make("tbody", {}, ...rows.map((row) => line(row, scores, extra))),
  );
  at("run-legend").replaceChildren(...(rows.length ? [legend()] : []));
  at("run-rows").replaceChildren(
    ...(rows.length ? [table] : [make("p", {}, t("no_rows"))]),
    ...(next ? [make("div", { class: "actions" }, button(t("more"), () => load(true), { id: "run-more" }))] : []),
  );
}

function line(row, scores, extra) {
  const marked = markedPair(row.changes);
  for (const side of ["source", "paraphrase"]) marked[side].dataset.name = t(side);
  const open = make("button", { type: "button", class: "plain", "aria-expanded": "false", "aria-label": `${t("details")}${t("colon")}${number(row.spscore)}` }, number(row.spscore));
  const labels = { rated: rating(row.rated), origin: [t("origins")[row.origin] ?? row.origin, row.stage ?? row.split].filter((own) => own !== undefined && own !== null).join(" · ") };
  const own = make(
    "tr",
    { "data-pair": row.pair_id },
    make("td", { class: "number", "data-name": t("spscore") }, open),
    make("td", { class: "pair" }, marked.source, marked.paraphrase),
    ...scores.slice(1).map((name) => make("td", { class: "number", "data-name": t(name) }, number(row[name]))),
    ...extra.map((name) => make("td", { class: name === "rated" ? "number" : "", "data-name": name === "origin" ? `${t(name)} · ${t("stage")}` : t(name) }, labels[name])),
    make("td", {}, verdict(row)),
  );
  own.addEventListener("click", (event) => {
    if (event.target === open || !event.target.closest("button, a")) toggle(row, own, open);
  });
  return own;
}

function verdict(row) {
  const box = make("div", { class: "verdict" });
  const fill = () => {
    const given = kept(store(), {})[row.pair_id]?.verdict;
    box.replaceChildren(
      ...["keep", "reject"].map((name) =>
        button(name === "keep" ? "✓" : "✗", () => set(given === name ? null : name), { "aria-pressed": String(given === name), "aria-label": t(`${name}_pair`), title: t(`${name}_pair`), class: name }),
      ),
    );
  };
  const set = (name) => {
    const all = kept(store(), {});
    if (name) all[row.pair_id] = { pair_id: row.pair_id, verdict: name, source: row.source, paraphrase: row.paraphrase, spscore: row.spscore };
    else delete all[row.pair_id];
    keep(store(), all);
    fill();
    box.querySelector(name === "reject" ? ".reject" : ".keep").focus();
    renderVerdicts();
  };
  fill();
  return box;
}

// A click opens what is known of a pair, the next one closes it; the address names the open pair.
async function toggle(row, place, open) {
  const other = new URLSearchParams(applied);
  if (open.getAttribute("aria-expanded") === "true") {
    open.setAttribute("aria-expanded", "false");
    if (place.nextSibling?.classList.contains("detail")) place.nextSibling.remove();
    other.delete("pair");
  } else {
    open.setAttribute("aria-expanded", "true");
    other.set("pair", row.pair_id);
    const cell = make("td", { colSpan: place.cells.length }, t("working"));
    place.after(make("tr", { class: "detail" }, cell));
    fill(cell, row.pair_id);
  }
  applied = other;
  setQuery("run", applied);
}

async function fill(cell, pair, signal) {
  try {
    const own = await get(`/v1/run/pair/${encodeURIComponent(pair)}`, signal);
    const rated = (own.rated ?? null) === null ? [] : [make("p", { class: "notes" }, `${t("rated")}${t("colon")}${rating(own.rated)}`)];
    cell.replaceChildren(card(own, own), ...rated, make("a", { href: `#run?pair=${encodeURIComponent(pair)}` }, t("pair_link")));
  } catch (error) {
    cell.replaceChildren();
    show(error);
  }
}

// The pair of a link: its row is opened where it is shown, else it stands above the rows.
async function openLinked(pair, signal) {
  const place = at("run-rows").querySelector(`tr[data-pair="${CSS.escape(pair)}"]`);
  if (place) {
    const open = place.querySelector("button");
    open.setAttribute("aria-expanded", "true");
    const cell = make("td", { colSpan: place.cells.length });
    place.after(make("tr", { class: "detail" }, cell));
    await fill(cell, pair, signal);
    place.scrollIntoView({ block: "nearest" });
  } else {
    const box = make("div", { class: "linked" });
    at("run-rows").prepend(box);
    await fill(box, pair, signal);
  }
}
