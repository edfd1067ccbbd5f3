"""llm against a real HTTP server: every fault is counted."""

from collections import Counter
from collections.abc import Callable, Iterator

import pandas as pd
import pytest
from built_pairs import manifest, table
from llm_server import PREFIX, Server

from gaixie.jobs.build_pairs import main
from gaixie.jobs.pairs.llm import FOLDER, Asking, Llm
from gaixie.udfs.command_line import UserError

KEY = "sk-0123456789-of-the-test"
SENTENCES = [f"第{number}号仓库的货物在昨天夜里全部运到了码头。" for number in range(60)]


@pytest.fixture
def serve(tmp_path, monkeypatch) -> Iterator[Callable[..., Server]]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    started: list[Server] = []

    def start(script: dict[str, list[str]] | None = None) -> Server:
        started.append(Server(tmp_path, script))
        return started[-1]

    yield start
    for server in started:
        server.stop()


def llm(url: str, **given: object) -> Llm:
    return Llm(output="out", input="in", model="a-model", base_url=url, **given)


FAULTS = {"429": None, "500": None, "cut": None, "json": "gave_up"}
FAULTS |= dict.fromkeys(("lines", "empty"), "malformed_answer")
FAULTS |= dict.fromkeys(("refused", "withheld", "filtered"), "refused")
FAULTS |= {"cut off": "cut_off", "rejected": "rejected"}
"""For each fault that a sentence meets once: its reason."""


def test_every_fault_is_counted_under_a_reason(serve):
    server = serve({SENTENCES[5 * n]: [fault] for n, fault in enumerate(FAULTS)})
    figures: dict[str, int] = {}
    asking = Asking(llm(server.url, concurrency=4, retries=2), figures)
    made = {item.source: item for item in asking.write(SENTENCES)}
    for number, (fault, reason) in enumerate(FAULTS.items()):
        assert made.pop(SENTENCES[5 * number]).reason == reason, fault
    assert all(item[:3] == (None, text, PREFIX + text) for text, item in made.items())
    assert figures["requests"] == 60
    assert figures["completion_tokens"] > 1000


def test_degrees_paraphrases_and_the_limit_of_requests(serve):
    server = serve()
    given = {"prompt": "degree", "degree": (1, 4), "paraphrases": 2, "max_requests": 9}
    figures: dict[str, int] = {}
    made = [*Asking(llm(server.url, **given), figures).write(SENTENCES[:3])]
    variants = [{"degree": degree, "number": k} for degree in (1, 4) for k in (0, 1)]
    assert [(item.source, item.differs) for item in made] == [
        (text, variant) for text in SENTENCES[:3] for variant in variants
    ]
    assert Counter(item.reason for item in made) == {None: 9, "over_limit": 3}
    more = Asking(llm(server.url, **given), figures).write(SENTENCES[3:5])  # after a restart
    assert {item.reason for item in more} == {"over_limit"}
    assert len(server.answered()) == 9


@pytest.mark.parametrize("fault", ["unauthorized", "missing", "poor", "rejected"])
def test_what_stops_the_job(serve, fault):
    """The error names the endpoint, in one line, without the key that the server repeats."""
    server = serve({"仓库": [fault] * 99})
    with pytest.raises(UserError) as stopped:
        list(Asking(llm(server.url, concurrency=1), {}).write(SENTENCES))
    assert server.url in str(stopped.value)
    assert KEY not in str(stopped.value)
    assert "\n" not in str(stopped.value)
    assert not server.answered()


def test_prompts(tmp_path):
    for path in FOLDER.glob("*.j2"):
        given = {"prompt": path.stem} | ({"degree": (3,)} if path.stem == "degree" else {})
        [message] = llm("http://x/v1", **given).messages("一个句子", 3)
        assert message["content"].endswith("\n\n一个句子")
    (tmp_path / "mine.j2").write_text("改写：{{ sentence }}", "utf-8")
    given = {"system": "你是编辑。", "extra_body": "{top_k: 20}"}
    mine = llm("http://x/v1", prompt=str(tmp_path / "mine.j2"), **given)
    assert mine.extra_body == {"top_k": 20}
    assert [message["content"] for message in mine.messages("句子")] == ["你是编辑。", "改写：句子"]
    digest = mine.parameters()["prompt_sha256"]
    (tmp_path / "other.j2").write_text("改写 {{ nothing }}", "utf-8")
    other = llm("http://x/v1", prompt=str(tmp_path / "other.j2"))
    assert other.parameters()["prompt_sha256"] != digest
    with pytest.raises(UserError, match=r"other\.j2"):
        other.check()


def test_from_sentences_to_pairs(spark, serve, tmp_path, capfd):
    """The accounts close despite faults, and the key is in no file and no line."""
    rows = [*SENTENCES, SENTENCES[0] + " ", "太短了。", None, "No Chinese in this one at all."]
    pd.DataFrame({"text": rows}).to_parquet(tmp_path / "text.parquet")
    faults = ["refused", "cut off", "copied", "english", "500", "lines"]
    server = serve({SENTENCES[n]: [fault] for n, fault in enumerate(faults)})
    line = ["llm", "--input", f"{tmp_path}/text.parquet", "--output", f"{tmp_path}/made"]
    line += ["--model", "a-model", "--base-url", server.url, "--piece-sentences", "20"]
    assert main([*line, "--dry-run"]) == 0
    assert "60 sentences: would send 60 requests" in capfd.readouterr().out
    assert not server.answered()
    assert not (tmp_path / "made").exists()
    assert main([*line, "--temperature", "0.5"]) == 0
    made, told = table(tmp_path / "made", "pairs"), manifest(tmp_path / "made")
    left = ("repeated", "too_short", "null", "refused", "cut_off", "copied", "malformed_answer")
    assert told.quarantine == dict.fromkeys(left, 1) | {"no_han": 2}
    assert (told.read, told.used, told.pairs, told.figures["requests"]) == (64, 55, 55, 60)
    assert set(made.paraphrase) == {PREFIX + SENTENCES[n] for n in (4, *range(6, 60))}
    assert {*zip(made.origin, made.method, made.model, strict=True)} == {("llm", "llm", "a-model")}
    assert '"temperature": 0.5' in made.parameters[0]
    said = "".join(capfd.readouterr()).encode()
    files = [path.read_bytes() for path in (tmp_path / "made").rglob("*") if path.is_file()]
    assert not any(KEY.encode() in text for text in (said, *files))
