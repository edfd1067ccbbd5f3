"""What the command prints of a trained model, and the model's card."""

from __future__ import annotations


def table(evaluation: dict) -> str:
    """The evaluation for a reader: what was trained on, and the scores in per cent."""
    corpus, parts = evaluation["corpus"], evaluation["paragraphs"]
    rows = [
        f"{corpus['name']}: {corpus['paragraphs']:,} paragraphs, {corpus['words']:,} words,"
        f" {corpus['characters']:,} characters",
        f"trained on {parts['train']:,} paragraphs, epoch chosen on {parts['choice']:,},"
        f" scored on {parts['held_out']:,} (seed {evaluation['seed']})",
        "",
        f"{'task':<6}{'epochs':>7}{'seconds':>9}{'precision':>11}{'recall':>8}{'F1':>7}"
        f"{'accuracy':>10}",
    ]
    for task, scores in evaluation["scores"].items():
        cells = f"{task:<6}{scores['epochs']:>7}{scores['seconds']:>9.1f}"
        for measure, width in (("precision", 11), ("recall", 8), ("f1", 7), ("accuracy", 10)):
            value = f"{100 * scores[measure]:.2f}" if measure in scores else "-"
            cells += f"{value:>{width}}"
        rows.append(cells)
    return "\n".join(rows)


def card(evaluation: dict) -> str:
    """The model card, in Markdown."""
    versions = evaluation["versions"]
    return f"""\
# LTP legacy model

Averaged perceptrons of LTP (ltp-extension {versions["ltp-extension"]}), trained by
`jobs/train_segmenter.py`. Tasks: {", ".join(evaluation["scores"])}.
As a segmenter its version is `{versions["segmenter"]}`.

```
{table(evaluation)}
```

- Text must be under Unicode NFKC: the words were trained so.
- Words and tags follow the corpus's own standard; scores against another standard are lower.
- Corpus: `{evaluation["corpus"]["name"]}`, SHA-256 `{evaluation["corpus"]["sha256"]}`. Its licence
  is its owner's: look there before you publish the model.
- Load it with `LtpSegmenter(FOLDER)` or `ltp.LTP(FOLDER)`; both give the same cuts.
"""
