"""Paraphrases eight sentences of the sample pairs, drawn by seed.

python examples/paraphrase.py [SEED]
"""

import random
import sys
from pathlib import Path

import pandas as pd

from gaixie.udfs.paraphrase.paraphraser import Paraphraser

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
pairs = pd.read_json(Path(__file__).with_name("pairs.jsonl"), lines=True)
sources = random.Random(seed).sample(sorted(set(pairs["source"])), 8)

for source, found in zip(sources, Paraphraser.load()(sources), strict=True):
    print(source)
    print("  →", found[0].text if found else "no paraphrase good enough")
