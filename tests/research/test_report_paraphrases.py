"""The figures of the paraphraser must be those of the readers' ratings."""

import json

from gaixie.research import report_paraphrases


def test_the_table(tmp_path, capsys):
    good, poor = [1.0, 2.0, 4.0, 5.0, 2.0], [3.0, 2.0, 3.5, 4.0, 1.0]
    lines = [
        {"kind": "news", "ratings": [good, good], "entities_kept": 100, "self_bleu": 40.0},
        {"kind": "news", "ratings": [good, poor], "entities_kept": 50, "self_bleu": 60.0},
        {"kind": "news", "ratings": None, "entities_kept": None, "self_bleu": None},
        {"kind": "novel", "ratings": [poor, poor], "entities_kept": None, "self_bleu": 20.0},
    ]
    file = tmp_path / "rated.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    assert report_paraphrases.main([str(file)]) == 0
    rows = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    # sources, shown, accepted, structure, synonyms, meaning, fluency, overall, entities, self-BLEU
    expected = ["3", "0.67", "0.50", "1.5", "2.0", "3.88", "4.75", "1.75", "75.0", "50.0"]
    assert rows["news"] == expected
    assert rows["all"][:3] == ["4", "0.75", "0.33"]
