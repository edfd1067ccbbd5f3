"""Selects the vocabulary: the frequent words of each part of speech.

Source: Chinese Sentence Paraphrasing, section 5.1, Table 5. All occurrences of a word with several
tags count under the class in which it is most frequent; ties go to the class that comes first in
parts_of_speech.CLASSES. Within a class words are ordered by count, the most frequent first, and
then by code points. Each class keeps the front of that order: its share of the distinct words,
rounded half up.
"""

import numpy as np
import pandas as pd

from gaixie.udfs.text.parts_of_speech import CLASSES, class_of


def words_of(tagged: pd.DataFrame, tag_set: str) -> pd.DataFrame:
    """Returns word, class, count and kept for every word, in the order of the vocabulary: the most
    frequent first, then by code points.

    tagged: word, tag, count, one row for each word and tag. tag_set: one of
    parts_of_speech.TAG_SETS.
    """
    of_tag = {tag: class_of(tag, tag_set) for tag in tagged["tag"].unique()}
    tagged = tagged.assign(**{"class": tagged["tag"].map(of_tag)})
    by_class = tagged.groupby(["word", "class"])["count"].sum().reset_index()
    by_class["rank"] = by_class["class"].map({name: rank for rank, name in enumerate(CLASSES)})
    by_class = by_class.sort_values(["word", "count", "rank"], ascending=[True, False, True])
    words = by_class.drop_duplicates("word")[["word", "class"]]
    words = words.assign(count=words["word"].map(by_class.groupby("word")["count"].sum()))
    words = words.sort_values(["count", "word"], ascending=[False, True], ignore_index=True)
    of_class = words.groupby("class")["word"]
    most = np.floor(words["class"].map(CLASSES) * of_class.transform("size") + 0.5)
    return words.assign(kept=of_class.cumcount() < most)


def class_counts(words: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Returns for each class the distinct and running words of words_of, all and those kept."""
    return {
        name: {
            "distinct": len(own),
            "kept": int(own["kept"].sum()),
            "running": int(own["count"].sum()),
            "running_kept": int(own.loc[own["kept"], "count"].sum()),
        }
        for name, own in ((name, words[words["class"] == name]) for name in CLASSES)
    }
