"""Renders a model's prompts from templates: prompts/NAME.j2, or a file of the user's.

A template gets `sentences` (a list), `degree` (1 to 5, or none), `listed` (the sentences as the
prompt lists them) and `form` (the required form of the answer; gaixie.jobs.pairs.llm.answers parses
it).

The three rules of paper.j2 are those of *Chinese Sentence Paraphrasing*, Table 2, word for word;
the other templates are this project's own, and the examples in few_shot.j2 are pairs of
examples/pairs.jsonl rated 4.6 or more.
"""

from __future__ import annotations

from collections.abc import Sequence

import jinja2

from gaixie.jobs.errors import JobError
from gaixie.jobs.pairs.llm.method import LlmSettings

ONE = "只输出改写后的句子，写成一行，不要解释，也不要重复原句。"
SEVERAL = (
    "共 {count} 个句子，请分别改写。只输出一个 JSON 对象，键为句子的编号，值为改写后的句子，"
    '例如 {{"1": "……", "2": "……"}}，不要解释。'
)

Message = dict[str, str]


class Prompt:
    """The prompt of some settings. Raises JobError if its template is invalid."""

    def __init__(self, settings: LlmSettings):
        path = settings.template
        self.system = settings.system
        environment = jinja2.Environment(
            undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        marks = ["第一个标记", "第二个标记"]
        try:
            self._template = environment.from_string(path.read_text("utf-8"))
            for count in (1, 2):
                asked = self.messages(marks[:count], settings.variants[0][0])[-1]["content"]
                if not all(mark in asked for mark in marks[:count]):
                    raise JobError(f"{path}: does not print the sentences, {{{{ listed }}}}")
        except jinja2.TemplateError as error:
            line = f", line {error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else ""
            raise JobError(f"{path}{line}: {error}") from error

    def messages(self, sentences: Sequence[str], degree: int | None) -> list[Message]:
        """Returns the messages of a request for one paraphrase of each sentence."""
        listed, form = sentences[0], ONE
        if len(sentences) > 1:
            lines = (f"{n}. {' '.join(text.split())}" for n, text in enumerate(sentences, 1))
            listed, form = "\n".join(lines), SEVERAL.format(count=len(sentences))
        given = {"sentences": sentences, "degree": degree, "listed": listed, "form": form}
        asked = self._template.render(given).strip()
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": asked}]
