"""Settings come from a YAML file, which the command line overrides."""

import argparse
import re
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field

from gaixie.udfs.storage.settings import Strict, add_options, load_settings, options_of


class Stage(Strict):
    steps: int = 1


class Settings(Strict):
    name: str
    rate: float = Field(0.5, gt=0)
    stages: dict[int, Stage] = Field(default_factory=dict)
    model: Stage | None = None


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text("name: 改写\nrate: 0.25\nmodel: null\n", "utf-8")
    return path


def test_the_command_line_comes_over_the_file(path):
    settings = load_settings(
        Settings,
        path,
        {"rate": 0.75, "name": None},
        ["rate=1e-3", "stages.2.steps=7", "model={steps: 3}", "model.steps=4"],
    )
    expected = Settings(name="改写", rate=1e-3, stages={2: Stage(steps=7)}, model=Stage(steps=4))
    assert settings == expected
    assert load_settings(Settings, str(path)) == Settings(name="改写", rate=0.25)


@pytest.mark.parametrize(
    "assignment", ["rate", "rate=[", "name.first=1", "model.seed=1", "rate=0", "stages.1=3"]
)
def test_one_line_says_what_is_wrong(path, assignment):
    with pytest.raises(ValueError, match=rf"^--set {re.escape(assignment)}: [^\n]+$"):
        load_settings(Settings, path, assignments=[assignment])


@pytest.mark.parametrize("text", ["name: [", "- name", "rate: 1", "name: a\nname: b"])
def test_a_file_that_is_none(path, text):
    path.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=rf"^{path}: (?!.*byte string)[^\n]+$"):
        load_settings(Settings, path)


class Options(Strict):
    folder: Path
    share: Annotated[float, Field(ge=0)] | None = None
    """10 % or more"""
    tier: Literal["core", "full"] | None = None
    local: bool = False
    degrees: tuple[Annotated[int, Field(ge=1)], ...] = ()
    names: list[str] = Field(default=[], title="NAME")
    seed: int = 7
    """of what is drawn."""


def test_options_have_the_names_types_and_help_of_their_fields():
    parser = argparse.ArgumentParser(usage="")
    add_options(parser, Options, positional=("folder",))
    text = parser.format_help()
    for said in ("--share N", "10 % or more", "--tier {core,full}", "--degrees N [N ...]"):
        assert said in text
    assert "of what is drawn (7)" in text
    line = ["out", "--local", "--degrees", "1", "3", "--names", "a", "--names", "b", "--share"]
    expected = Options(folder=Path("out"), share=0.5, local=True, degrees=(1, 3), names=["a", "b"])
    assert options_of(Options, parser.parse_args([*line, "0.5"])) == expected
    with pytest.raises(ValueError, match=r"^--degrees: .* greater than or equal to 1"):
        options_of(Options, parser.parse_args(["out", "--degrees", "0"]))
    some = argparse.ArgumentParser()
    add_options(some, Options, "seed", within="llm.")
    assert vars(some.parse_args(["--seed", "1"])) == {"llm.seed": "1"}
