// The part that scores a table: the answer is the table with its scores, to look at and to keep.

import { post, send } from "./api.js";
import { at, button, make, save } from "./dom.js";
import { countIn, histogram } from "./histogram.js";
import { onLanguage, t } from "./i18n.js";
import { JUDGEMENTS, card, number, unscored } from "./judged.js";
import { during, show } from "./trouble.js";

const FIRST = 50;
const XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const SIDES = ["source", "paraphrase"];
const ADDED = [...JUDGEMENTS, "spscore", "verdict", "reason"]; // the last columns of an answer
let shown = null;
let facts = null;
let stop = new AbortController();

const kindOf = (name) => (/\.(tsv|txt)$/i.test(name) ? "text/tab-separated-values" : /\.xlsx$/i.test(name) ? XLSX : "text/csv");

export function start() {
  onLanguage(render);
  onLanguage(renderFacts);
  at("table-cancel").addEventListener("click", () => stop.abort());
  at("file").addEventListener("change", () => {
    at("encoding").value = "";
    at("sheet").replaceChildren();
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
      const query = asChosen();
      for (const side of SIDES) if (at(`column-${side}`).value) query.set(side, at(`column-${side}`).value);
      const answer = await send(`/v1/score-table?${query}`, file, kindOf(file.name), stop.signal);
      const text = await read(answer.body);
      const columns = SIDES.map((side) => decodeURIComponent(answer.headers.get(`X-Column-${side}`)));
      shown = { name: file.name.replace(/\.\w+$/, ""), columns, rows: parse(text) };
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
  renderFacts();
  if (!file) return;
  await during(at("table-form").querySelector(".main"), at("table-status"), async () => {
    if (/\.(png|jpe?g|gif|webp|heic|pdf|docx?|pptx?|mp4|zip)$/i.test(file.name)) throw new Error(t("not_a_table"));
    facts = await (await send(`/v1/table-facts?${query}`, file, kindOf(file.name))).json();
    renderFacts();
    return t("recognised")(facts.rows);
  });
}

function renderFacts() {
  at("table-fields").hidden = !facts;
  if (!facts) return;
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
  const worst = [...scored].sort((a, b) => (a.spscore ?? Infinity) - (b.spscore ?? Infinity));
  const found = scored.map((row) => row.spscore).filter((score) => score !== null);
  const download = () => save(new Blob(["\ufeff", toKeep(rows, source, paraphrase)], { type: "text/csv" }), `${name}-${t("scored")}.csv`);
  const head = (text, number = true) => make("th", number ? { scope: "col", class: "number" } : { scope: "col" }, text);
  return [
    make("div", { class: "actions" }, button(t("save"), download, { class: "main" }), make("span", { class: "hint" }, t("file_scale"))),
    found.length ? histogram("spscore", countIn(found)) : "",
    make(
      "table",
      { class: "rows" },
      make("caption", {}, t("rows_shown")(Math.min(FIRST, body.length), body.length)),
      make("thead", {}, make("tr", {}, head(t("spscore")), head(`${t("source")} · ${t("paraphrase")}`, false), ...JUDGEMENTS.map((own) => head(t(own))))),
      make("tbody", {}, ...worst.slice(0, FIRST).map(line)),
    ),
  ];
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
  const word = row.verdict && make("div", { class: "notes" }, t("verdicts")[row.verdict]);
  const own = make(
    "tr",
    {},
    make("td", { class: "number", "data-name": t("spscore") }, open),
    make("td", { class: "pair", lang: "zh" }, make("div", { class: "text", "data-name": t("source") }, row.source), make("div", { class: "text", "data-name": t("paraphrase") }, row.paraphrase), why, word),
    ...JUDGEMENTS.map((name) => make("td", { class: "number", "data-name": t(name) }, number(row[name]))),
  );
  own.addEventListener("click", () => toggle(own, open, { source: row.source, paraphrase: row.paraphrase }));
  return own;
}

// The answer as people keep it: reasons and verdicts in words, and on a Chinese page a Chinese header.
function toKeep([header, ...body], source, paraphrase) {
  const own = header.length - ADDED.length;
  const chinese = document.documentElement.lang === "zh";
  const title = (name, k) => (k < own || !chinese ? name : t({ verdict: "rated_as", reason: "why_not" }[name] ?? name));
  const words = { verdict: (said) => t("verdicts")[said], reason: (said, row) => unscored(said, row[source], row[paraphrase]) };
  const cell = (text, k, row) => (text && k >= own && words[ADDED[k - own]] ? words[ADDED[k - own]](text, row) : text);
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
