"""The first compilation of kernels must be announced."""

from gaixie.udfs.text.compiled import announce_compiling


def test_a_line_says_why_the_first_scoring_takes_long(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    announce_compiling.__wrapped__()
    line = "gaixie: compiling kernels, once on this machine: about 30 s\n"
    assert capsys.readouterr() == ("", line)
    (tmp_path / "gaixie.udfs.text").mkdir()
    (tmp_path / "gaixie.udfs.text" / "words.nbi").touch()
    announce_compiling.__wrapped__()
    assert capsys.readouterr() == ("", "")
