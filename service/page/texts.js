// What the page says, in both of its languages.

export const TEXTS = {
  en: {
    skip: "To the content", parts: "What this service does", language: "中文", to_dark: "Dark", to_light: "Light",
    tab_paraphrase: "Paraphrase", tab_score: "Score", tab_table: "Table", tab_run: "Run",
    token: "Access token", use: "Use", token_hint: "This service asks for a token. It is kept until you close this tab.",
    sentences: "Sentences, one a line", sentences_hint: "Write or paste Chinese sentences.",
    degree: "Degree of change", degrees: ["a light touch", "some words", "words and order", "much", "a rewrite"],
    candidates: "Candidates", keep: "Terms that must not change", keep_hint: "separated by commas", write: "Paraphrase",
    cancel: "Cancel", working: "Working …", cancelled: "Cancelled.", done: (n) => (n === 1 ? "1 sentence done." : `${n} sentences done.`),
    source: "Source", paraphrase: "Paraphrase", judge: "Judge", example: "Example", swap: "Swap",
    file: "Table of pairs", file_hint: "CSV or TSV with the columns source and paraphrase; all other columns come back as they are.",
    encoding: "Encoding", save: "Download with scores", rows_shown: (n, all) => `${n} of ${all} rows`, not_judged: "not judged",
    structure: "structure", synonyms: "synonyms", meaning: "meaning", fluency: "fluency", spscore: "SPScore-zh",
    moved: "moved", replaced: "replaced", added: "added", lost: "lost", why: "Why", copy: "Copy", copied: "Copied.",
    entities: (p) => `${p} % of numbers, names and dates kept`, none_left: "No candidate is left.",
    dropped: (c, k) => [c && `${c} copies of the sentence left out`, k && `${k} that lost a term left out`].filter(Boolean).join("; "),
    histogram: (name) => `How ${name} is spread`, stage: "stage", origin: "origin", text: "Text contains", from: "from", to: "to",
    any: "any", filter: "Show", sort: "Sort by", order: "Order", up: "lowest first", down: "highest first", more: "More", sample: "Random pairs",
    export_csv: "Export CSV", export_parquet: "Export Parquet", pairs: (n) => `${n} pairs`, details: "Details", no_rows: "No pair is like that.",
    version: "version", unreachable: "The service cannot be reached.",
    reasons: {
      null: "a sentence is missing", undecodable: "it holds bytes that are no characters", empty: "a sentence is empty",
      too_short: "shorter than the metric was made for: take the numbers with care", too_long: "a sentence is too long",
      no_han: "no Chinese in it", identical: "the two are identical",
    },
  },
  zh: {
    skip: "跳到正文", parts: "本服务的功能", language: "English", to_dark: "深色", to_light: "浅色",
    tab_paraphrase: "改写", tab_score: "评分", tab_table: "表格", tab_run: "语料",
    token: "访问令牌", use: "使用", token_hint: "本服务需要令牌。关闭标签页后即清除。",
    sentences: "句子，每行一句", sentences_hint: "输入或粘贴中文句子。",
    degree: "改动程度", degrees: ["轻微", "换些词", "换词并调整语序", "较大", "重写"],
    candidates: "候选数", keep: "不可改动的词语", keep_hint: "用逗号分隔", write: "改写",
    cancel: "取消", working: "处理中……", cancelled: "已取消。", done: (n) => `已完成 ${n} 句。`,
    source: "原句", paraphrase: "改写句", judge: "评分", example: "示例", swap: "对调",
    file: "句对表格", file_hint: "CSV 或 TSV，须有 source 和 paraphrase 两列；其余各列原样返回。",
    encoding: "编码", save: "下载评分结果", rows_shown: (n, all) => `显示 ${n} 行，共 ${all} 行`, not_judged: "未评分",
    structure: "结构", synonyms: "同义替换", meaning: "语义", fluency: "通顺", spscore: "SPScore-zh",
    moved: "移动", replaced: "替换", added: "增加", lost: "删去", why: "原因", copy: "复制", copied: "已复制。",
    entities: (p) => `数字、专名、日期保留 ${p}%`, none_left: "没有合格的候选。",
    dropped: (c, k) => [c && `略去 ${c} 个与原句相同的候选`, k && `略去 ${k} 个丢失词语的候选`].filter(Boolean).join("；"),
    histogram: (name) => `${name}的分布`, stage: "阶段", origin: "来源", text: "包含文字", from: "从", to: "到",
    any: "不限", filter: "筛选", sort: "排序依据", order: "顺序", up: "由低到高", down: "由高到低", more: "更多", sample: "随机抽取",
    export_csv: "导出 CSV", export_parquet: "导出 Parquet", pairs: (n) => `${n} 个句对`, details: "详情", no_rows: "没有符合条件的句对。",
    version: "版本", unreachable: "无法连接服务。",
    reasons: {
      null: "缺少句子", undecodable: "含有无法解码的字节", empty: "句子为空",
      too_short: "短于评分模型适用的长度，数值仅供参考", too_long: "句子过长",
      no_han: "不含汉字", identical: "两句完全相同",
    },
  },
};

// The metric gives reasons in English (udfs/meaning/reasons.ini); the other language has them by their form.
const FORMS = [
  [/^structure: (\d+%) of the shared words stand in the same order$/, (m) => `结构：${m[1]} 的共有词语序未变`],
  [/^structure: the sentences have too little in common to compare$/, () => "结构：两句共有的词太少，无从比较"],
  [/^synonyms: (\d+%) of the words are kept$/, (m) => `用词：${m[1]} 的词未替换`],
  [/^synonyms: the sentences have too little in common to compare$/, () => "用词：两句共有的词太少，无从比较"],
  [/^meaning: the number “(.+)” is missing$/, (m) => `语义：丢失数字“${m[1]}”`],
  [/^meaning: the number “(.+)” is new$/, (m) => `语义：多出数字“${m[1]}”`],
  [/^meaning: the negation “(.+)” is dropped$/, (m) => `语义：丢失否定“${m[1]}”`],
  [/^meaning: the negation “(.+)” is added$/, (m) => `语义：多出否定“${m[1]}”`],
  [/^meaning: “(.+)” is missing$/, (m) => `语义：丢失“${m[1]}”`],
  [/^meaning: “(.+)” is new$/, (m) => `语义：多出“${m[1]}”`],
  [/^meaning: “(.+)” became “(.+)”$/, (m) => `语义：“${m[1]}”变成“${m[2]}”`],
  [/^meaning: “(.+)” has no counterpart in the paraphrase$/, (m) => `语义：原句的“${m[1]}”没有对应的内容`],
  [/^meaning: “(.+)” has no counterpart in the source$/, (m) => `语义：改写句的“${m[1]}”没有对应的内容`],
  [/^meaning: about (\d+%) of the content has a counterpart$/, (m) => `语义：约 ${m[1]} 的内容有对应`],
  [/^fluency: “(.+)” reads oddly$/, (m) => `通顺：“${m[1]}”不通顺`],
  [/^fluency: it reads less smoothly than the source$/, () => "通顺：不如原句通顺"],
  [/^no Chinese in the source$/, () => "原句不含汉字"],
  [/^no Chinese in the paraphrase$/, () => "改写句不含汉字"],
];

export function reasonIn(language, reason) {
  if (language === "zh") {
    for (const [form, say] of FORMS) {
      const found = reason.match(form);
      if (found) return say(found);
    }
  }
  return reason;
}
