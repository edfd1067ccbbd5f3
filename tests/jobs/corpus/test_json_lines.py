"""One pass over lines of JSON must find the columns, and the files whose origins are all known."""

from gaixie.jobs.corpus.json_lines import look_at_lines
from gaixie.jobs.corpus.storage import Storage

GOOD = '{"s": "句", "of": "llm"}'
FILES = {
    "known": [GOOD, "", ' {"\\u006ff": "human", "s": 1, "deep": {"of": "x"}}'],
    "unknown": [GOOD, '{"of": "gpt"}'],
    "none": [GOOD, '{"s": "句"}'],
    "null": [GOOD, '{"of": null}'],
    "deeper": ['{"deep": {"of": "llm"}}'],
    "broken": [GOOD, '{"of": "llm"'],
    "twice": ['{"of": "llm", "of": "gpt"}'],
}
ODD = {"twice"}


def test_which_files_have_origins_that_there_are(spark, tmp_path):
    for name, lines in FILES.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    files = Storage(spark).list_files(str(tmp_path))
    found = look_at_lines(spark, files, "utf-8", ["s"], "of")
    assert found.names == ["deep", "of", "s"]
    known, odd = ({uri.rpartition("/")[2] for uri in uris} for uris in (found.known, found.odd))
    assert known - {"broken.jsonl"} == {"known.jsonl"}  # a broken line has no origin
    assert odd == {f"{name}.jsonl" for name in ODD}
    for column in (None, "o.f"):
        assert not look_at_lines(spark, files, "utf-8", ["s"], column).known
