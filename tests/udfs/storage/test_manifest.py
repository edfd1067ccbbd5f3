"""The manifests that jobs write must be refused if they are wrong, because readers trust them."""

import json

import pytest
from manifests import release_manifest, run_manifest

from gaixie.udfs.storage import manifest as m


def test_a_manifest_is_read_as_it_was_written(tmp_path):
    run = run_manifest(
        format_version=m.FORMAT_VERSION,
        rows={"llm": {"read": 3, "scored": 2, "quarantined": 1, "duplicates": 0}},
        stages={"llm": {0: 1, 3: 1}},
        cuts={"llm": [0.1, 0.2, None]},
        quantiles={"llm": {0.05: 0.4}},
        files={"scored": [{"path": "scored/a.parquet", "bytes": 5}]},
    )
    assert json.loads(run.to_json())["cuts"] == {"llm": [0.1, 0.2, None]}
    assert run.total.read == 3
    files = [{"path": "README.md", "bytes": 1, "sha256": "11"}]
    files += [{"path": "data/a.parquet", "bytes": 5, "sha256": "00", "rows": 7}]
    release = release_manifest(files=files, format_version=m.FORMAT_VERSION)
    assert json.loads(release.to_json())["files"] == files
    assert [file.path for file in release.data_files] == ["data/a.parquet"]
    for written, read in ((run, m.read_run), (release, m.read_release)):
        (tmp_path / m.MANIFEST).write_text(written.to_json(), "utf-8")
        assert read(str(tmp_path)) == m.read_manifest(str(tmp_path)) == written


@pytest.mark.parametrize(
    "changes",
    [
        *[{"format_version": 3}, {"format_version": "2"}, {"rows": []}, {"rows": {"llm": {}}}],
        *[{"run_id": "../d"}, {"files": {"scored": [{"path": "../d", "bytes": 1}]}}],
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path, changes):
    values = json.loads(run_manifest().to_json())
    (tmp_path / m.MANIFEST).write_text(json.dumps(values | changes), "utf-8")
    for read in (m.read_run, m.read_manifest):
        named = rf"^{tmp_path}/manifest.json: [^\n]*{next(iter(changes))}[^\n]*$"
        with pytest.raises(m.ManifestError, match=named):
            read(str(tmp_path))


@pytest.mark.parametrize(
    "changes",
    [
        {"build": "../../other"},
        {"version": "../runs"},
        {"runs": [{"run_id": "../x", "created": "", "manifest_sha256": "", "rows": 1}]},
        {"files": [{"path": "data/../../x", "bytes": 1, "sha256": "0"}]},
        {"files": [{"path": "s3://b/x", "bytes": 1, "sha256": "0", "rows": 1}]},
    ],
)
def test_a_release_that_leads_out_of_its_folder_is_refused(tmp_path, changes):
    """A path that leads out of the release must be refused, because readers join it to the
    folder."""
    values = release_manifest().model_dump(by_alias=True) | changes
    (tmp_path / m.MANIFEST).write_text(json.dumps(values))
    with pytest.raises(m.ManifestError, match=f"manifest.json: .*{next(iter(changes))}"):
        m.read_release(str(tmp_path))
