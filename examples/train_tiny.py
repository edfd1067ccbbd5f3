"""Trains a tiny model on a scored run, through all three stages, and lets it write a sentence.

    make demo && python examples/train_tiny.py [RUN [OUTPUT]]     needs gaixie[train]

It shows how the parts fit together; a model of this size and data cannot paraphrase.
"""

import sys
from collections import Counter
from pathlib import Path

from gaixie.training.loop.pairs import Corpus
from gaixie.training.loop.run import Run
from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
from gaixie.training.modeling.trained_paraphraser import TrainedParaphraser
from gaixie.training.settings import Data, Decoding, load_settings
from gaixie.udfs.text import entities
from gaixie.udfs.text.entities_kept import ENTITIES
from gaixie.udfs.text.segmenters import load_segmenter

run = sys.argv[1] if len(sys.argv) > 1 else "out/demo/runs/demo"
output = sys.argv[2] if len(sys.argv) > 2 else "out/tiny"

tables = [table for stage in (1, 2, 3) for _, table in Corpus(Data(uri=run)).read(stage)]
sentences = [text for table in tables for text in table["source"].to_pylist()]
count = Counter(word for words in load_segmenter().cut(sentences) for word in words if word.strip())
frequent = [word for word, _ in count.most_common(500)]
tokenizer = EntityAlignedTokenizer.from_words(frequent, entities.load_settings(ENTITIES))
tokenizer.save_pretrained(f"{output}/tokenizer")

changes = [f"data.uri={run}", f"tokenizer={output}/tokenizer", f"output={output}/run"]
changes += ["trainer.max_steps=20"]
Run(load_settings(str(Path(__file__).with_name("demo-train.yaml")), changes)).train()

paraphraser = TrainedParaphraser.load(f"{output}/run/model")
[candidates] = paraphraser(sentences[:1], Decoding(max_new_tokens=40))
print(sentences[0], *[candidate.text for candidate in candidates], sep="\n")
