// The part that judges a table: the answer is the table with its scores, to look at and to keep.

import { send } from "./api.js";
import { at, make, save } from "./dom.js";
import { countIn, histogram } from "./histogram.js";
import { onLanguage, t } from "./i18n.js";
import { JUDGEMENTS } from "./judged.js";
import { during } from "./trouble.js";

const FIRST = 50;
const NAMES = ["source", "paraphrase", "spscore", ...JUDGEMENTS, "reason"];
let shown = null;

export function start() {
  onLanguage(render);
  at("table-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const file = at("file").files[0];
    const tabs = /\.(tsv|txt)$/i.test(file.name);
    during(at("table-form").querySelector(".main"), at("table-status"), async () => {
      const type = tabs ? "text/tab-separated-values" : "text/csv";
      const text = await send(`/v1/score-table?encoding=${at("encoding").value}`, file, type);
      shown = { text, rows: parse(text, tabs ? "\t" : ","), name: file.name.replace(/(\.\w+)?$/, "-scored$1"), type };
      render();
    });
  });
}

function render() {
  at("table-result").replaceChildren(...(shown ? result(shown) : []));
}

function result({ text, rows, name, type }) {
  const [header, ...body] = rows;
  const places = NAMES.map((own) => header.lastIndexOf(own));
  const scores = body.map((row) => row[places[2]]).filter((value) => value !== "").map(Number);
  const download = () => save(new Blob(["\ufeff", text], { type }), name);
  const line = (row) =>
    make(
      "tr",
      {},
      ...places.map((place, k) => {
        const value = row[place];
        if (k < 2) return make("td", { lang: "zh" }, make("div", { class: "text" }, value));
        if (NAMES[k] === "reason") return make("td", {}, value && t("reasons")[value]);
        return make("td", { class: "number" }, value === "" ? "–" : Number(value).toFixed(2));
      }),
    );
  return [
    make("div", { class: "actions" }, make("button", { type: "button", class: "main", on: { click: download } }, t("save"))),
    histogram("spscore", countIn(scores)),
    make(
      "div",
      { class: "scroll", tabIndex: 0, role: "region", "aria-label": t("tab_table") },
      make(
        "table",
        {},
        make("caption", {}, t("rows_shown")(Math.min(FIRST, body.length), body.length)),
        make("thead", {}, make("tr", {}, ...NAMES.map((own, k) => make("th", { scope: "col", class: k > 1 && k < 7 ? "number" : "" }, own === "reason" ? t("why") : t(own))))),
        make("tbody", {}, ...body.slice(0, FIRST).map(line)),
      ),
    ),
  ];
}

// CSV as Python's csv module writes it: quotes around what holds a delimiter, a quote or a line break.
export function parse(text, delimiter) {
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
    else if (c === delimiter || c === "\n") {
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
