"""Label Studio: the configuration of a project, tasks to import there, and what it exports (JSON, JSON-MIN).

Format: labelstud.io/guide/task_format and labelstud.io/tags/choices. Choices, for Label Studio's Rating has
no 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from gaixie.research.annotation.plan import FIELDS, IS_PARAPHRASE, SCALE, Plan, Task
from gaixie.research.annotation.sheets import NOTE, Answer, answers
from gaixie.udfs.storage import storage

HINTS = {
    "structure": "句式结构改变了多少",
    "synonyms": "用词替换了多少",
    "meaning": "意思保留了多少",
    "fluency": "改写句是否通顺",
    "overall": "总体：作为改写有多好",
    IS_PARAPHRASE: "两句意思相同吗（1 是，0 否）",
}
"""What annotators see beside the name of a field."""


def config() -> str:
    """The labelling configuration of a project, to paste under Settings, Labeling Interface, Code."""
    lines = ["<View>", '  <Header value="原句 source"/>', '  <Text name="source" value="$source"/>']
    lines += [
        '  <Header value="改写 paraphrase"/>',
        '  <Text name="paraphrase" value="$paraphrase"/>',
    ]
    for name in FIELDS:
        values = range(2 if name == IS_PARAPHRASE else SCALE + 1)
        lines.append(f'  <Header value="{name}: {HINTS[name]}" size="5"/>')
        lines.append(
            f'  <Choices name="{name}" toName="paraphrase" choice="single-radio" required="true" '
            'showInline="true">'
        )
        lines += [f'    <Choice value="{value}"/>' for value in values]
        lines.append("  </Choices>")
    lines.append(
        f'  <TextArea name="{NOTE}" toName="paraphrase" placeholder="note" maxSubmissions="1"/>'
    )
    return "\n".join([*lines, "</View>", ""])


def write_tasks(plan: Plan, tasks: Iterable[Task]) -> str:
    """An annotator's tasks, to import into a project of theirs."""
    data = []
    for task in tasks:
        pair = plan.pairs[task.pair]
        texts = {"source": pair.source, "paraphrase": pair.paraphrase}
        data.append({"data": {"task": task.task, **texts}})
    return storage.to_json(data)


def read_export(uri: str) -> Iterator[Answer]:
    """The answers of an export. Tasks that nobody answered, and skipped ones, are passed over.

    Raises OSError, or ValueError naming the file, the place of the task in it, and what is wrong.
    """
    try:
        tasks = json.loads(storage.read_bytes(uri).decode("utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"{uri}: not JSON: {error}") from None
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise ValueError(f"{uri}: expected a list of tasks, as Label Studio exports it")
    for number, task in enumerate(tasks, 1):
        where = f"{uri}, task {number}"
        data = task.get("data", task)
        if not isinstance(data, dict) or not isinstance(data.get("task"), str):
            raise ValueError(f"{where}: no 'task' in its data; was it made by annotate.py export?")
        where += f" ({data['task']})"
        if "data" in task:
            done = [a for a in task.get("annotations") or [] if not a.get("was_cancelled")]
            if len(done) > 1:
                raise ValueError(
                    f"{where}: {len(done)} annotations, expected one; delete the others"
                )
            values = {key: text for a in done for key, text in _results(where, a)}
        else:
            values = {name: _text(task[name]) for name in (*FIELDS, NOTE) if name in task}
        if any(values.get(name) for name in FIELDS):
            yield Answer(where, data["task"], answers(where, values), values.get(NOTE, ""))


def _results(where: str, annotation: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(field, answer) of an annotation."""
    for result in annotation.get("result") or []:
        value = result.get("value")
        if not isinstance(value, dict) or "from_name" not in result:
            raise ValueError(f"{where}: a result without from_name or value")
        content = next(
            (value[k] for k in ("choices", "rating", "number", "text") if k in value), ""
        )
        yield result["from_name"], _text(content)


def _text(value: Any) -> str:
    """What was answered, of a list of one or a number."""
    if isinstance(value, list):
        return " ".join(map(_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
