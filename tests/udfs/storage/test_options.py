"""Options must have the names, types and help of their settings model."""

import argparse
from typing import Annotated, Literal

from pydantic import Field

from gaixie.udfs.storage.options import add_options
from gaixie.udfs.storage.settings import Strict


class Settings(Strict):
    share: Annotated[float, Field(ge=0)] | None = None
    """10 % or more"""
    tier: Literal["core", "full"] | None = None
    local: bool = False
    degrees: tuple[Annotated[int, Field(ge=1)], ...] = ()


def test_options_of_a_model(capsys):
    parser = argparse.ArgumentParser()
    add_options(parser, Settings, *Settings.model_fields, within="llm.")
    given = vars(parser.parse_args(["--local", "--degrees", "1", "3", "--share", "0.5"]))
    assert given == {
        "llm.share": "0.5",
        "llm.tier": None,
        "llm.local": True,
        "llm.degrees": ["1", "3"],
    }
    text = parser.format_help()
    assert "--share N" in text
    assert "10 % or more" in text
    assert "--tier {core,full}" in text
    assert "--degrees N [N ...]" in text
