"""Settings: a YAML file under the command line."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, Field

from gaixie.udfs.storage.settings import Strict, load_settings


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
    assert settings == Settings(
        name="改写", rate=1e-3, stages={2: Stage(steps=7)}, model=Stage(steps=4)
    )
    assert load_settings(Settings, str(path)) == Settings(name="改写", rate=0.25)


def test_an_empty_file_is_all_defaults(tmp_path):
    (tmp_path / "empty.yaml").touch()

    class Defaults(BaseModel):
        a: int = 3

    assert load_settings(Defaults, tmp_path / "empty.yaml").a == 3


BAD = {
    "no KEY=VALUE": ("rate", "--set rate: expected KEY=VALUE"),
    "not YAML": ("rate=[", "--set rate=[: the value is not YAML"),
    "no level": ("name.first=1", "--set name.first=1: name has no settings of its own"),
    "unknown": ("model.seed=1", "--set model.seed=1: model.seed: no such setting"),
    "out of range": ("rate=0", "--set rate=0: rate: Input should be greater than 0 (given: 0)"),
    "missing": ("stages.1=3", "--set stages.1=3: stages.1: Input should be a valid dictionary"),
}


@pytest.mark.parametrize("case", BAD)
def test_one_line_says_what_is_wrong(path, case):
    assignment, expected = BAD[case]
    with pytest.raises(ValueError, match=r"^[^\n]+$") as refused:
        load_settings(Settings, path, assignments=[assignment])
    assert str(refused.value).startswith(expected.format(path=path))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: [", "not YAML: "),
        ("- name", "expected a mapping of settings"),
        ("rate: 1", "name: Field required"),
    ],
)
def test_a_file_that_is_none(path, text, expected):
    path.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=r"^[^\n]+$") as refused:
        load_settings(Settings, path)
    assert str(refused.value).startswith(f"{path}: {expected}")


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.yaml: no such file"):
        load_settings(Settings, tmp_path / "none.yaml")
