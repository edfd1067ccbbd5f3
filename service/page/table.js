// The part that scores a table: the answer is the table with its scores, to look at and to keep.

import { post, send } from "./api.js";
import { at, button, make, save } from "./dom.js";
import { countIn, histogram } from "./histogram.js";
import { onLanguage, t } from "./i18n.js";
import { JUDGEMENTS, card, doubt, number, points, unscored, verdictOf } from "./judged.js";
import { during, show } from "./trouble.js";

const FIRST = 50;
const XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const SIDES = ["source", "paraphrase"];
const ADDED = [...JUDGEMENTS, "spscore", "verdict", "reason"]; // the last columns of an answer
let shown = null;
let facts = null;
let view = {}; // the group and the order of the rows that are shown
let stop = new AbortController();

const kindOf = (name) => (/\.(tsv|txt)$/i.test(name) ? "text/tab-separated-values" : /\.xlsx$/i.test(name) ? XLSX : "text/csv");

export function start() {
  onLanguage(render);
  onLanguage(renderFacts);
  at("table-cancel").addEventListener("click", () => stop.abort());
  at("file").addEventListener("change", () => {
    at("encoding").value = "";
    at("sheet").replaceChildren();
    at("table-fields").hidden = true;
    look();
  });
  for (const id of ["encoding", "sheet"]) at(id).addEventListener("change", () => look());
  for (const side of SIDES) at(`column-${side}`).addEventListener("change", () => forget());
  at("table-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const file = at("file").files[0];
    forget();
    stop = new AbortController();
    at("table-cancel").hidden = false;
    during(at("table-form").querySelector(".main"), at("table-status"), async () => {
      if (!file.size) throw new Error(t("empty_file"));
      const chosen = SIDES.map((side) => at(`column-${side}`).value);
      if (facts && !facts.rows) throw new Error("no rows below the header");
      if (facts && !chosen.every(Boolean)) throw new Error(t("choose_columns"));
      if (facts && chosen[0] === chosen[1]) throw new Error(t("same_column"));
      const query = asChosen();
      for (const side of SIDES) if (at(`column-${side}`).value) query.set(side, at(`column-${side}`).value);
      const answer = await send(`/v1/score-table?${query}`, file, kindOf(file.name), stop.signal);
      const text = await read(answer.body);
      const columns = SIDES.map((side) => decodeURIComponent(answer.headers.get(`X-Column-${side}`)));
      const sheet = facts?.sheets.length > 1 ? [at("sheet").value] : [];
      shown = { name: [file.name.replace(/\.\w+$/, ""), ...sheet].join("-"), columns, rows: parse(text) };
      view = { group: null, sort: "spscore", descending: false };
      render();
    }).finally(() => (at("table-cancel").hidden = true));
  });
}

// The answer comes row by row: the status says how far it is.
async function read(stream) {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  let text = "";
  let lines = -1; // without the header
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text;
    const piece = decoder.decode(value, { stream: true });
    text += piece;
    lines += piece.split("\n").length - 1;
    if (facts) at("table-status").textContent = t("scoring")(Math.min(Math.max(0, lines), facts.rows), facts.rows);
  }
}

// What is no longer about this file, this encoding, these columns is not shown.
function forget() {
  shown = null;
  render();
}

// How the file is to be read, as far as somebody has chosen.
function asChosen() {
  const query = new URLSearchParams();
  for (const name of ["encoding", "sheet"]) if (at(name).value) query.set(name, at(name).value);
  return query;
}

async function look() {
  const file = at("file").files[0];
  const query = asChosen();
  forget();
  facts = null;
  if (!file) return;
  await during(at("table-form").querySelector(".main"), at("table-status"), async () => {
    if (/\.(png|jpe?g|gif|webp|heic|pdf|docx?|pptx?|mp4|zip)$/i.test(file.name)) throw new Error(t("not_a_table"));
    if (!file.size) throw new Error(t("empty_file"));
    const found = await (await send(`/v1/table-facts?${query}`, file, kindOf(file.name))).json();
    if (!found.columns.length) throw new Error(t("empty_file"));
    facts = found;
    renderFacts();
    return t("recognised")(facts.rows);
  });
}

function renderFacts() {
  if (!facts) return;
  at("table-fields").hidden = false;
  at("encoding-field").hidden = facts.encoding === "xlsx";
  if (facts.encoding !== "xlsx") at("encoding").value = facts.encoding;
  at("sheet-field").hidden = facts.sheets.length < 2;
  at("sheet").replaceChildren(...facts.sheets.map((name) => make("option", { value: name }, name)));
  at("sheet").value = facts.sheet ?? "";
  for (const side of SIDES) {
    const own = at(`column-${side}`);
    const chosen = own.value && facts.columns.includes(own.value) ? own.value : (facts[side] ?? "");
    own.replaceChildren(make("option", { value: "" }, t("choose")), ...facts.columns.map((name) => make("option", { value: name }, name)));
    own.value = chosen;
  }
}

function render() {
  at("table-result").replaceChildren(...(shown ? result(shown) : []));
}

function result({ rows, name, columns }) {
  const [header, ...body] = rows;
  const [source, paraphrase] = columns.map((own) => header.indexOf(own));
  const scored = body.map((cells) => readRow(cells, source, paraphrase));
  const found = scored.map((row) => row.spscore).filter((score) => score !== null);
  const download = () => save(new Blob(["\ufeff", toKeep(rows, source, paraphrase)], { type: "text/csv" }), `${name}-${t("scored")}.csv`);
  const wanted = scored.filter((row) => !view.group || groupOf(row) === view.group).sort(inOrder);
  return [
    make("div", { class: "actions" }, button(t("save"), download, { class: "main" }), make("span", { class: "hint" }, t("file_scale"))),
    groups(scored),
    found.length ? histogram("spscore", countIn(found)) : "",
    make(
      "table",
      { class: "rows" },
      make("caption", {}, t("rows_shown")(Math.min(FIRST, wanted.length), wanted.length)),
      make("thead", {}, make("tr", {}, head("spscore"), make("th", { scope: "col" }, `${t("source")} · ${t("paraphrase")}`), ...JUDGEMENTS.map(head))),
      make("tbody", {}, ...wanted.slice(0, FIRST).map(line)),
    ),
  ];
}

const groupOf = (row) => (row.verdict ? doubt(row) || row.verdict : "none");

// How many rows there are of each kind; a click shows these alone, another one all.
function groups(scored) {
  const counts = Object.keys(t("groups")).map((group) => [group, scored.filter((row) => groupOf(row) === group).length]);
  const choose = (group, text) => button(text, () => showOnly({ group: view.group === group ? null : group }, `.groups [data-group="${group ?? ""}"]`), { "aria-pressed": String(view.group === group), "data-group": group ?? "" });
  const some = counts.filter(([, n]) => n).map(([group, n]) => choose(group, `${t("groups")[group]} ${n}`));
  return make("div", { class: "groups" }, choose(null, t("all_rows")(scored.length)), ...some);
}

// Changes what is shown of the rows; the focus stays.
function showOnly(changes, focus) {
  Object.assign(view, changes);
  render();
  at("table-result").querySelector(focus)?.focus();
}

// Rows without a score come last.
function inOrder(a, b) {
  const [left, right] = [a[view.sort], b[view.sort]];
  if (left === null || right === null) return (left === null) - (right === null);
  return view.descending ? right - left : left - right;
}

function head(name) {
  const own = name === view.sort;
  const sort = () => showOnly({ sort: name, descending: own && !view.descending }, `[data-sort="${name}"]`);
  const text = t(name) + (own ? (view.descending ? " ↓" : " ↑") : "");
  return make("th", { scope: "col", class: "number", "aria-sort": own ? (view.descending ? "descending" : "ascending") : "none" }, button(text, sort, { "data-sort": name }));
}

// A row of the answer as the scores of a pair, null where there are none.
function readRow(cells, source, paraphrase) {
  const last = cells.slice(-ADDED.length);
  const added = Object.fromEntries(ADDED.map((name, k) => [name, last[k] === "" ? null : last[k]]));
  const numbers = [...JUDGEMENTS, "spscore"].map((name) => [name, added[name] === null ? null : Number(added[name])]);
  return { ...added, ...Object.fromEntries(numbers), source: cells[source], paraphrase: cells[paraphrase] };
}

function line(row) {
  const why = row.reason && make("div", { class: "notes", lang: document.documentElement.lang }, unscored(row.reason, row.source, row.paraphrase));
  const open = make("button", { type: "button", class: "plain", "aria-expanded": "false", title: t("details") }, number(row.spscore));
  const word = row.verdict && make("div", { class: `notes ${doubt(row)}`, lang: document.documentElement.lang }, verdictOf(row));
  const own = make(
    "tr",
    {},
    make("td", { class: "number", "data-name": t("spscore") }, open),
    make("td", { class: "pair", lang: "zh" }, make("div", { class: "text", "data-name": t("source") }, row.source), make("div", { class: "text", "data-name": t("paraphrase") }, row.paraphrase), word, why),
    ...JUDGEMENTS.map((name) => make("td", { class: "number", "data-name": t(name) }, number(row[name]))),
  );
  own.addEventListener("click", () => toggle(own, open, { source: row.source, paraphrase: row.paraphrase }));
  return own;
}

// The answer as people keep it: reasons and verdicts in words, and on a Chinese page a Chinese header and points of 100.
function toKeep([header, ...body], source, paraphrase) {
  const own = header.length - ADDED.length;
  const chinese = document.documentElement.lang === "zh";
  const title = (name, k) => (k < own || !chinese ? name : t({ verdict: "rated_as", reason: "why_not" }[name] ?? name));
  const words = { verdict: (said, row) => verdictOf(readRow(row, source, paraphrase)), reason: (said, row) => unscored(said, row[source], row[paraphrase]) };
  const said = { ...Object.fromEntries(chinese ? [...JUDGEMENTS, "spscore"].map((name) => [name, (score) => String(points(Number(score)))]) : []), ...words };
  const cell = (text, k, row) => (text && k >= own && said[ADDED[k - own]] ? said[ADDED[k - own]](text, row) : text);
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return [header.map(title), ...body.map((row) => row.map(cell))].map((row) => `${row.map(quoted).join(",")}\n`).join("");
}

// A click on a row says why it is scored so; another one closes it.
async function toggle(row, open, pair) {
  if (open.getAttribute("aria-expanded") === "true") {
    open.setAttribute("aria-expanded", "false");
    row.nextSibling?.remove();
    return;
  }
  open.setAttribute("aria-expanded", "true");
  const cell = make("td", { colSpan: row.cells.length }, t("working"));
  row.after(make("tr", { class: "detail" }, cell));
  try {
    const answer = await post("/v1/score", { pairs: [pair], explain: true, changes: true });
    cell.replaceChildren(card(answer.scores[0], pair));
  } catch (error) {
    show(error);
  }
}

// CSV as Python's csv module writes it: quotes around what holds a delimiter, a quote or a line break.
export function parse(text) {
  const rows = [];
  let row = [];
  let cell = "";
  let quoted = false;
  for (let k = 0; k < text.length; k += 1) {
    const c = text[k];
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text[k + 1] === '"') cell += text[(k += 1)];
      else quoted = false;
    } else if (c === '"' && cell === "") quoted = true;
    else if (c === "," || c === "\n") {
      row.push(cell);
      cell = "";
      if (c === "\n") {
        rows.push(row);
        row = [];
      }
    } else cell += c;
  }
  if (cell !== "" || row.length) rows.push([...row, cell]);
  return rows;
}
