"""Names the columns that SPScore-zh returns and those that each of its tiers sees."""

import hashlib

from gaixie.udfs.features import FEATURES
from gaixie.udfs.meaning.extract import CORE_FEATURES
from gaixie.udfs.meaning.pair_encoder import TASKS

JUDGEMENTS = ("structure", "synonyms", "meaning", "fluency")
OUTPUTS = (*JUDGEMENTS, "spscore")
"""The order of the columns, everywhere."""
CORE_OUTPUTS = tuple(f"core_{name}" for name in OUTPUTS)
ENCODER_FEATURES = tuple(f"encoder_{task}" for task in TASKS)
TIERS = {
    "paper": FEATURES,
    "core": CORE_FEATURES,
    "full": (*CORE_FEATURES, *CORE_OUTPUTS, *ENCODER_FEATURES),
}
"""The feature columns that each tier sees."""


def named(columns: tuple[str, ...]) -> str:
    """Returns the columns as a signature states them: by name if they are few."""
    if columns == FEATURES:
        return ",".join(columns)
    return f"{len(columns)}-{hashlib.sha256(','.join(columns).encode()).hexdigest()[:8]}"
