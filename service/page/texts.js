// What the page says, in both of its languages.

const many = (n, one, more) => (n === 1 ? `1 ${one}` : `${n.toLocaleString("en")} ${more}`);
const count = (n) => n.toLocaleString("zh");

export const TEXTS = {
  en: {
    colon: ": ", comma: ", ", origins: {},
    tagline: "How good is a Chinese paraphrase, and why? Score a pair, or have sentences rewritten.",
    skip: "Skip to the content", parts: "What this service does", language: "中文", to_dark: "Dark", to_light: "Light",
    tab_paraphrase: "Paraphrase", tab_score: "Score", tab_table: "Table", tab_run: "Run",
    token: "Access token", use: "Use", token_hint: "This service needs a token. It is kept until you close this tab.",
    sentences: "Text to rewrite", sentences_hint: "Write or paste Chinese text. Each sentence is rewritten and scored.",
    degree: "Degree of change", degrees: ["a light touch", "some words", "words and order", "many changes", "a rewrite"],
    tone: "Tone", as_it_is: "as it is", tones: { 正式: "formal", 口语: "spoken", 精简: "concise" },
    candidates: "Candidates", keep: "Terms that must not change", keep_hint: "separated by commas", write: "Paraphrase",
    cancel: "Cancel", working: "Working …", cancelled: "Cancelled.", progress: (n, all) => `${n}/${all}`,
    done: (n) => `${many(n, "sentence", "sentences")} done.`,
    source: "Source", paraphrase: "Paraphrase", judge: "Score", example: "Try an example", swap: "Swap", link: "Copy link", result: "Copy result",
    shortcut: "Scores update as you type; Ctrl+Enter scores at once. No score checks facts: compare numbers and names yourself.",
    history: "Recent pairs", history_hint: "Kept in this browser only.", clear: "Clear",
    about_score: "About this score", signature: "Signature", model: "About this model", card: "card",
    about_text: "SPScore-zh follows strict ratings: 100 would be a rewording that shares nothing but the meaning and reads perfectly. Of the sample pairs none has more than 75; half of those by people have 45 or less, few more than 65. A change of structure of 40 or of wording of 60 is already large. The score does not check facts, and it is less reliable for very short sentences.",
    examples_of: "An example of each level:", scale: "Levels of the score", of_all: (x) => `${x} of 100`,
    levels: [["weak", "copied, or changed in meaning"], ["fair", "lightly edited"], ["good", "clearly reworded"], ["excellent", "thoroughly reworded"]],
    verdicts: {
      no_paraphrase: "not a paraphrase", other_meaning: "probably a different meaning", near_copy: "a near-copy", poor: "a poor rewording",
      light: "fair, a light rewording", clear: "good, a clear rewording", thorough: "excellent, a thorough rewording",
    },
    meanings: ["check the meaning: it may differ", "no clear change of meaning found", "no change of meaning found"], odd: "reads oddly",
    doubted: (numbers) => `the meaning of ${numbers.length > 1 ? "sentences" : "sentence"} ${numbers.join(", ")} may have changed`, fluent: "reads well",
    as_a_whole: "no sentence seems to change its meaning, but check the text as a whole", nth: (k) => `Sentence ${k}`,
    too_short_alone: (numbers) => `Too short to be scored alone: sentence ${numbers.join(", ")}.`,
    missing: (names) => `Still empty: ${names.join(" and ")}.`, not_scored: "Not scored",
    file: "Table of pairs", file_hint: "CSV, TSV or Excel (.xlsx). Encoding and columns are detected, and you can change them; all columns are returned.",
    encoding: "Encoding", sheet: "Sheet", column_source: "Source column", column_paraphrase: "Paraphrase column", choose: "Choose a column",
    choose_columns: "Choose below which column has the source and which the paraphrase.", same_column: "Source and paraphrase must be different columns.", empty_file: "The file is empty.",
    recognised: (rows) => `${many(rows, "row", "rows")}.`, scoring: (n, all) => `Scoring … ${n.toLocaleString("en")} of ${all.toLocaleString("en")} rows`,
    save: "Download with scores", file_scale: "In the file, scores are numbers from 0 to 1: times 100, they are the points shown here. No score checks facts: compare numbers and names yourself.",
    scored: "scored", rated_as: "Verdict", why_not: "Reason", rows_shown: (n, all) => `Shown: ${n.toLocaleString("en")} of ${many(all, "row", "rows")}`, all_rows: (n) => many(n, "row", "rows"),
    groups: { changed: "meaning changed", doubt: "meaning in doubt", near_copy: "near-copies", poor: "poor", light: "fair", clear: "good", thorough: "excellent", none: "not scored" },
    structure: "Structure", synonyms: "Wording", meaning: "Meaning", fluency: "Fluency", spscore: "Score",
    moved: "moved", replaced: "replaced", added: "added", lost: "lost", why: "Why", copy: "Copy", edit: "Edit", copied: "Copied.",
    each: "Sentence by sentence", whole_text: "The whole text", not_a_table: "Expected a table: CSV, TSV or XLSX.", check: "Nearly half of all rewordings are wrong somewhere: read them before you use them.", only_light: "Only light edits were found: the structure is hardly changed.",
    left_out: (number) => (number ? `${number} left out that changed next to nothing, or the meaning` : ""),
    absent: (terms) => `Terms to keep that are not in the text: ${terms.join(", ")}`, fewer: (n, got) => `Asked for ${n}; only ${got} ${got === 1 ? "was" : "were"} good enough`,
    histogram: (name) => `Distribution of ${name.toLowerCase()}`, between: (low, high, n) => `${low} to ${high}: ${many(n, "pair", "pairs")}`,
    pair_id: "Id", group: "Group", method: "Method", about_stage: "Stage: the order of training; higher scores come later, and 0 is left out. ", about_rated: "Rating: given to the pair by people or a language model, beside the score. ",
    about_tier: (tier) => `These scores were computed with the run${tier ? `, by tier ${tier}` : ""}; the Score tab may use another tier, and differ.`,
    stage: "Stage", origin: "Origin", split: "Split", rated: "Rating", text: "Text contains", from: "from", to: "to",
    any: "any", filter: "Apply", reset: "Reset", filters: "Filters and distributions", more: "More", sample: "Random pairs", sorted: "All pairs",
    export_csv: "Export CSV", export_parquet: "Export Parquet", pairs: (n) => many(n, "pair", "pairs"),
    shown: (n, all) => `${n.toLocaleString("en")} of ${many(all, "pair", "pairs")}`, sampled: (n, all) => `${n.toLocaleString("en")} random pairs of ${all.toLocaleString("en")}`,
    details: "Details", no_rows: "No pairs match.", pair_link: "Link to this pair",
    keep_pair: "Keep", reject_pair: "Reject", verdict: "Verdict", sorted_out: (k, r) => `${k} kept, ${r} rejected`, export_verdicts: "Export verdicts",
    unreachable: "The service cannot be reached.", api: "API (OpenAPI)",
    reasons: {
      null: "A sentence is missing.", undecodable: "A sentence has bytes that cannot be decoded.", empty: "A sentence is empty.",
      too_short: "Shorter than the metric is made for: treat the numbers with care.", too_long: ({ length, longest }) => `A sentence is too long: at most ${longest} characters${length ? `, this has ${length}` : ""}.`, malformed: "This row does not have the columns of the header.",
      no_han: ({ without }) => `Not Chinese: ${["the sentence has", "the source has", "the paraphrase has", "both sentences have"][without]} no Chinese characters.`, identical: "The sentences are identical.",
      nothing_good_enough: "No rewording was good enough. Try another degree or tone, or try again.",
    },
  },
  zh: {
    colon: "：", comma: "，", origins: { parallel: "平行语料", back_translation: "回译", llm: "大模型", human: "人工" },
    tagline: "中文改写好不好，好在哪里？给句对评分，或让句子换个说法。",
    skip: "跳到正文", parts: "本服务的功能", language: "English", to_dark: "深色", to_light: "浅色",
    tab_paraphrase: "改写", tab_score: "评分", tab_table: "表格", tab_run: "语料",
    token: "访问令牌", use: "使用", token_hint: "本服务需要令牌。关闭标签页后即清除。",
    sentences: "要改写的文字", sentences_hint: "输入或粘贴中文，逐句改写并评分。",
    degree: "改动程度", degrees: ["略作改动", "换些词", "换词并调整语序", "大幅调整", "彻底改写"],
    tone: "语气", as_it_is: "保持", tones: { 正式: "正式", 口语: "口语", 精简: "精简" },
    candidates: "候选数", keep: "不可改动的词语", keep_hint: "用逗号分隔", write: "改写",
    cancel: "取消", working: "处理中……", cancelled: "已取消。", progress: (n, all) => `${n}/${all}`,
    done: (n) => `已完成 ${count(n)} 句。`,
    source: "原句", paraphrase: "改写句", judge: "评分", example: "试试例句", swap: "对调", link: "复制链接", result: "复制结果",
    shortcut: "输入时自动评分，按 Ctrl+Enter 立即评分。评分不核查事实，数字、人名等请自己核对。",
    history: "最近的句对", history_hint: "只保存在本浏览器中。", clear: "清空",
    about_score: "评分说明", signature: "签名", model: "改写模型", card: "card_zh",
    about_text: "SPScore-zh 的尺度偏严：100 分要求除意思以外全部换新，而且十分通顺。样例中没有一对超过 75 分，人工改写也有一半在 45 分以下，很少超过 65 分；句式变化达到 40、用词变化达到 60，已是很大的改动。它不核查事实；句子很短时，分数仅供参考。",
    examples_of: "各档举例，点一下就评分：", scale: "总分的档次", of_all: (x) => `${x} 分（满分 100 分）`,
    levels: [["不足", "照抄或走样"], ["尚可", "改动较轻"], ["良好", "改写明显"], ["优秀", "改写充分"]],
    verdicts: {
      no_paraphrase: "不是改写", other_meaning: "意思很可能变了", near_copy: "近乎照抄", poor: "改写欠佳",
      light: "尚可，改动较轻", clear: "良好，改写明显", thorough: "优秀，改写充分",
    },
    meanings: ["意思可能有出入，请核对", "未见明显出入", "未见意思改变"], odd: "读来不够通顺",
    doubted: (numbers) => `第 ${numbers.join("、")} 句意思可能变了`, fluent: "读来通顺",
    as_a_whole: "逐句未见意思改变，连起来请核对", nth: (k) => `第 ${k} 句`,
    too_short_alone: (numbers) => `第 ${numbers.join("、")} 句过短，不单独评分。`,
    missing: (names) => `请填写${names.join("和")}。`, not_scored: "未评分",
    file: "句对表格", file_hint: "支持 CSV、TSV 和 Excel（.xlsx）。自动识别编码和列名，也可自行更改；所有列原样返回。",
    encoding: "编码", sheet: "工作表", column_source: "原句所在列", column_paraphrase: "改写句所在列", choose: "请选择列",
    choose_columns: "请在下面选择哪一列是原句、哪一列是改写。", same_column: "原句和改写句的两列不能相同。", empty_file: "文件是空的。",
    recognised: (rows) => `共 ${count(rows)} 行。`, scoring: (n, all) => `评分中……${count(n)}/${count(all)} 行`,
    save: "下载评分结果", file_scale: "文件中的分数与页面相同，满分 100 分。评分不核查事实：数字、人名等请自己核对。",
    scored: "评分", rated_as: "评语", why_not: "说明", rows_shown: (n, all) => `显示 ${count(n)} 行，共 ${count(all)} 行`, all_rows: (n) => `${count(n)} 行`,
    groups: { changed: "意思变了", doubt: "意思存疑", near_copy: "照抄", poor: "欠佳", light: "尚可", clear: "良好", thorough: "优秀", none: "未评分" },
    structure: "句式变化", synonyms: "用词变化", meaning: "语义保持", fluency: "通顺度", spscore: "总分",
    moved: "移动", replaced: "替换", added: "增加", lost: "删去", why: "原因", copy: "复制", edit: "编辑", copied: "已复制。",
    each: "逐句评分", whole_text: "全文", not_a_table: "这不是表格文件，请用 CSV、TSV 或 XLSX。", check: "所有改写中有将近一半有差错，用前请核对。", only_light: "只找到轻微的改动，句式几乎没变。",
    left_out: (number) => (number ? `略去 ${number} 个几乎没改或改变原意的候选` : ""),
    absent: (terms) => `文中没有这些须保留的词语：${terms.join("、")}`, fewer: (n, got) => `要 ${n} 个，只有 ${got} 个合格`,
    histogram: (name) => `${name}的分布`, between: (low, high, n) => `${low} 到 ${high}：${count(n)} 个句对`,
    pair_id: "编号", group: "分组", method: "方法", about_stage: "阶段：训练的先后，总分越高越靠后，0 不参加训练。", about_rated: "参考评分：人或大模型另给的评分。",
    about_tier: (tier) => `这里的分数是生成语料时算的${tier ? `（档位 ${tier}）` : ""}，“评分”页所用的档位可能不同，分数也会不同。`,
    stage: "阶段", origin: "来源", split: "划分", rated: "参考评分", text: "包含文字", from: "从", to: "到",
    any: "不限", filter: "筛选", reset: "重置", filters: "筛选与分布", more: "更多", sample: "随机抽取", sorted: "全部句对",
    export_csv: "导出 CSV", export_parquet: "导出 Parquet", pairs: (n) => `${count(n)} 个句对`,
    shown: (n, all) => `显示 ${count(n)} 个，共 ${count(all)} 个句对`, sampled: (n, all) => `从 ${count(all)} 个句对中随机抽取 ${count(n)} 个`,
    details: "详情", no_rows: "没有符合条件的句对。", pair_link: "此句对的链接",
    keep_pair: "保留", reject_pair: "剔除", verdict: "取舍", sorted_out: (k, r) => `保留 ${k} 个，剔除 ${r} 个`, export_verdicts: "导出取舍",
    unreachable: "无法连接服务。", api: "接口文档（OpenAPI）",
    reasons: {
      null: "缺少句子。", undecodable: "句子含有无法解码的字节。", empty: "句子为空。",
      too_short: "句子过短，分数仅供参考。", too_long: ({ length, longest }) => `句子过长：最多 ${longest} 字${length ? `，这里有 ${length} 字` : ""}。`, malformed: "这一行与表头的列数不符。",
      no_han: ({ without }) => `不是中文：${["句中", "原句里", "改写句里", "两句里都"][without]}没有汉字。`, identical: "两句完全相同。",
      nothing_good_enough: "没有足够好的改写。请换个程度、换个语气，或再试一次。",
    },
  },
};

// The metric gives its reasons in English (udfs/meaning/reasons.ini): the word before the colon names the
// judgement, and quotation marks enclose words of the sentences. Each form has its Chinese.
const KINDS = { number: "数字", weekday: "星期", date: "日期", negation: "否定" };
const FORMS = [
  [
    /^hardly reordered: (\d+%) of the shared words stand in the same order$/,
    (m) => `语序几乎未动：${m[1]} 的共有词次序相同`,
  ],
  [/^the sentences have too little in common to compare$/, () => "两句共有的词太少，无从比较"],
  [/^(\d+%) of the words are kept$/, (m) => `${m[1]} 的词没有替换`],
  [/^the (\w+) “(.+)” is (?:missing|dropped)$/, (m) => `缺少${KINDS[m[1]]}“${m[2]}”`],
  [/^the (\w+) “(.+)” is (?:new|added)$/, (m) => `多出${KINDS[m[1]]}“${m[2]}”`],
  [/^“(.+)” is missing$/, (m) => `缺少“${m[1]}”`],
  [/^“(.+)” is new$/, (m) => `多出“${m[1]}”`],
  [/^“(.+)” became “(.+)”$/, (m) => `“${m[1]}”变成了“${m[2]}”`],
  [/^“(.+)” has no counterpart in the paraphrase$/, (m) => `原句的“${m[1]}”没有对应的内容`],
  [/^“(.+)” has no counterpart in the source$/, (m) => `改写句的“${m[1]}”没有对应的内容`],
  [/^about (\d+%) of the content has a counterpart$/, (m) => `约 ${m[1]} 的内容有对应`],
  [/^the meaning differs as a whole; no single word shows it$/, () => "整体意思有出入，难以指明是哪个词"],
  [/^“(.+)” reads oddly$/, (m) => `“${m[1]}”读来不通顺`],
  [/^it reads less smoothly than the source$/, () => "不如原句通顺"],
  [/^no Chinese in the source$/, () => "原句不含汉字"],
  [/^no Chinese in the paraphrase$/, () => "改写句不含汉字"],
];

// A reason as {judgement, text, terms}.
export function reasonIn(language, reason) {
  const [, judgement = "meaning", english] = reason.match(/^(?:(structure|synonyms|meaning|fluency): )?(.*)$/s);
  const terms = [...english.matchAll(/“(.+?)”/g)].map((found) => found[1]);
  const form = language === "zh" && FORMS.find(([own]) => own.test(english));
  return { judgement, text: form ? form[1](english.match(form[0])) : english, terms };
}

// The service's error messages in Chinese; in English they are shown unchanged.
const ERRORS = [
  [/^line ([\d,]+): (\d+) cells, but (\d+) columns$/, (m) => `第 ${m[1]} 行有 ${m[2]} 个单元格，而表头有 ${m[3]} 列。`],
  [/^line ([\d,]+): not (\S+); perhaps \?encoding=(\S+)$/, (m) => `第 ${m[1]} 行不是 ${m[2]} 编码，请试试 ${m[3]}。`],
  [/^line ([\d,]+): a NUL character$/, (m) => `第 ${m[1]} 行含有空字符（NUL）。`],
  [/^line ([\d,]+): /, (m) => `第 ${m[1]} 行的引号或分隔符有误。`],
  [/^expected one column \S+, found none$/, () => "文件是空的。"],
  [/^expected one column (\S+), found (.*)$/, (m) => `须有且只有一列“${{ source: "原句", paraphrase: "改写" }[m[1]] ?? m[1]}”，表中有：${m[2]}。`],
  [/^column (\S+): the answer adds a column of this name$/, (m) => `列名“${m[1]}”与评分结果的列名相同，请改名。`],
  [/^no rows below the header$/, () => "表头下没有数据。"],
  [/^expected (?:a|one) sheet.* with rows, found (.+): save/, (m) => `请选定一张有数据的工作表，现有：${m[1]}。`],
  [/^not UTF-8, GB18030 or Big5/, () => "无法识别编码：请选择编码，或检查文件是不是表格。"],
  [/^not an Excel workbook/, () => "不是 Excel 工作簿（.xlsx）。"],
  [/^([\d,]+) rows: at most ([\d,]+) a table$/, (m) => `表格有 ${m[1]} 行，最多 ${m[2]} 行。`],
  [/^([\d,]+) (?:pairs|texts): at most ([\d,]+)/, (m) => `一次最多 ${m[2]} 条，收到 ${m[1]} 条。`],
  [/^the body has more than ([\d,]+) bytes$/, (m) => `内容超过 ${m[1]} 字节。`],
  [/^a bearer token is needed; this one is wrong$/, () => "访问令牌不正确。"],
  [/^a bearer token is needed$/, () => "需要访问令牌。"],
  [/^[\d,]+ items are already waiting$/, () => "排队的请求太多，请稍后再试。"],
  [/^not done within ([\d.]+) s/, (m) => `${m[1]} 秒内没有完成，请缩小范围或稍后再试。`],
  [/^the service (?:is shutting down|has shut down)$/, () => "服务正在停止。"],
  [/^n: input should be less than or equal to (\d+)/, (m) => `候选数最多 ${m[1]} 个。`],
  [/keep: expected terms of 2 to 40 characters/, () => "不可改动的词语须为 2 到 40 个字。"],
  [/^no such pair$/, () => "没有这个句对。"],
  [/^an error in the service/, () => "服务出错，详见其日志。"],
];

export function errorIn(language, message) {
  if (language === "zh") {
    for (const [form, say] of ERRORS) {
      const found = message.match(form);
      if (found) return say(found);
    }
  }
  return message;
}
