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


RUN, RELEASE = run_manifest(), release_manifest()
WRONG = [
    *[(RUN, {"format_version": 3}), (RUN, {"format_version": "2"}), (RUN, {"rows": []})],
    *[(RUN, {"rows": {"llm": {}}}), (RUN, {"run_id": "../d"})],
    (RUN, {"files": {"scored": [{"path": "../d", "bytes": 1}]}}),
    *[(RELEASE, {"build": "../../other"}), (RELEASE, {"version": "../runs"})],
    (RELEASE, {"runs": [{"run_id": "../x", "created": "", "manifest_sha256": "", "rows": 1}]}),
    (RELEASE, {"files": [{"path": "data/../../x", "bytes": 1, "sha256": "0"}]}),
    (RELEASE, {"files": [{"path": "s3://b/x", "bytes": 1, "sha256": "0", "rows": 1}]}),
]


@pytest.mark.parametrize(("manifest", "changes"), WRONG)
def test_what_cannot_be_read_or_leads_out_of_its_folder_is_one_line(tmp_path, manifest, changes):
    """Readers join the paths of a manifest to its folder."""
    values = json.loads(manifest.to_json()) | changes
    (tmp_path / m.MANIFEST).write_text(json.dumps(values), "utf-8")
    named = rf"^{tmp_path}/manifest.json: [^\n]*{next(iter(changes))}[^\n]*$"
    for read in (m.read_run if manifest is RUN else m.read_release, m.read_manifest):
        with pytest.raises(m.ManifestError, match=named):
            read(str(tmp_path))
