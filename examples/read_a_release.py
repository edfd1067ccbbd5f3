"""Reads a published data set: its manifest, and the first pair of every file.

python examples/read_a_release.py [ROOT [VERSION]]     ROOT: a folder or s3://bucket/prefix
"""

import sys

import pyarrow.parquet as pq

from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import ManifestError, read_release

root = sys.argv[1] if len(sys.argv) > 1 else "out/demo"
version = sys.argv[2] if len(sys.argv) > 2 else None
try:
    if version is None:
        version = storage.read_json(storage.join(root, "releases", "latest.json"))["version"]
    folder = storage.join(root, "releases", version)
    manifest = read_release(folder)
except (OSError, ManifestError) as error:
    sys.exit(f"{error}; jobs/release_dataset.py makes a release")

print(f"release {version}, {manifest.license}, {manifest.pairs:,} pairs, {manifest.signature}")
for data in manifest.data_files:
    with storage.open_file(storage.join(folder, manifest.build, data.path)) as file:
        first = pq.read_table(file).slice(0, 1).to_pylist()[0]
    print(f"\n{data.path}: {data.rows:,} pairs")
    print(f"{first['spscore']:.3f}  {first['source']}\n       {first['paraphrase']}")
