// The part that scores a table: the answer is the table with its scores, to look at and to keep.

import { post, send } from "./api.js";
import { at, make, save } from "./dom.js";
import { countIn, histogram } from "./histogram.js";
import { onLanguage, t } from "./i18n.js";
import { JUDGEMENTS, card } from "./judged.js";
import { during, show } from "./trouble.js";

const FIRST = 50;
const XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const SIDES = ["source", "paraphrase"];
let shown = null;
let facts = null;
let stop = new AbortController();

const kindOf = (name) => (/\.(tsv|txt)$/i.test(name) ? "text/tab-separated-values" : /\.xlsx$/i.test(name) ? XLSX : "text/csv");

export function start() {
  onLanguage(render);
  onLanguage(renderFacts);
  at("table-cancel").addEventListener("click", () => stop.abort());
  at("file").addEventListener("change", () => look(""));
  at("encoding").addEventListener("change", () => look(at("encoding").value));
  for (const side of SIDES) at(`column-${side}`).addEventListener("change", () => forget());
  at("table-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const file = at("file").files[0];
    forget();
    stop = new AbortController();
    at("table-cancel").hidden = false;
    during(at("table-form").querySelector(".main"), at("table-status"), async () => {
      const query = new URLSearchParams();
      if (at("encoding").value) query.set("encoding", at("encoding").value);
      for (const side of SIDES) if (at(`column-${side}`).value) query.set(side, at(`column-${side}`).value);
      const answer = await send(`/v1/score-table?${query}`, file, kindOf(file.name), stop.signal);
      const text = await read(answer.body);
      const columns = SIDES.map((side) => decodeURIComponent(answer.headers.get(`X-Column-${side}`)));
      shown = { text, name: `${file.name.replace(/\.\w+$/, "")}-scored.csv`, columns, rows: parse(text) };
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

async function look(encoding) {
  const file = at("file").files[0];
  forget();
  facts = null;
  renderFacts();
  if (!file) return;
  if (!encoding) at("encoding").value = "";
  await during(at("table-form").querySelector(".main"), at("table-status"), async () => {
    if (/\.(png|jpe?g|gif|webp|heic|pdf|docx?|pptx?|mp4|zip)$/i.test(file.name)) throw new Error(t("not_a_table"));
    const query = encoding ? `?encoding=${encoding}` : "";
    facts = await (await send(`/v1/table-facts${query}`, file, kindOf(file.name))).json();
    renderFacts();
    return t("recognised")(facts.rows);
  });
}

function renderFacts() {
  at("table-fields").hidden = !facts;
  if (!facts) return;
  at("encoding-field").hidden = facts.encoding === "xlsx";
  if (facts.encoding !== "xlsx") at("encoding").value = facts.encoding;
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

function result({ text, rows, name, columns }) {
  const [header, ...body] = rows;
  const place = (own) => header.lastIndexOf(own);
  const [source, paraphrase] = columns.map((own) => header.indexOf(own));
  const score = (row) => (row[place("spscore")] === "" ? Infinity : Number(row[place("spscore")]));
  const worst = [...body].sort((a, b) => score(a) - score(b));
  const scores = body.map(score).filter(Number.isFinite);
  const download = () => save(new Blob(["\ufeff", text], { type: "text/csv" }), name);
  const line = (row) => {
    const why = row[place("reason")];
    const open = make("button", { type: "button", class: "plain", "aria-expanded": "false", title: t("details") }, Number.isFinite(score(row)) ? score(row).toFixed(2) : "–");
    const own = make(
      "tr",
      {},
      make("td", { class: "number" }, open),
      make("td", { lang: "zh" }, make("div", { class: "text" }, row[source]), make("div", { class: "text" }, row[paraphrase]), why ? make("div", { class: "notes", lang: document.documentElement.lang }, t("reasons")[why]) : null),
      ...JUDGEMENTS.map((judgement) => make("td", { class: "number" }, row[place(judgement)] === "" ? "–" : Number(row[place(judgement)]).toFixed(2))),
    );
    own.addEventListener("click", () => toggle(own, open, { source: row[source], paraphrase: row[paraphrase] }));
    return own;
  };
  return [
    make("div", { class: "actions" }, make("button", { type: "button", class: "main", on: { click: download } }, t("save"))),
    histogram("spscore", countIn(scores)),
    make(
      "table",
      { class: "rows" },
      make("caption", {}, t("rows_shown")(Math.min(FIRST, body.length), body.length)),
      make("thead", {}, make("tr", {}, make("th", { scope: "col", class: "number" }, t("spscore")), make("th", { scope: "col" }, `${t("source")} · ${t("paraphrase")}`), ...JUDGEMENTS.map((own) => make("th", { scope: "col", class: "number" }, t(own))))),
      make("tbody", {}, ...worst.slice(0, FIRST).map(line)),
    ),
  ];
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
    cell.replaceChildren(card(answer.scores[0]));
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
