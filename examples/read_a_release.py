"""Reads a published data set: its manifest, its card, and the pairs of a split.

python examples/read_a_release.py [ROOT [VERSION]]     ROOT: a folder or s3://bucket/prefix
"""

import sys

import pyarrow.parquet as pq

from gaixie.udfs.io import storage

root = sys.argv[1] if len(sys.argv) > 1 else "out/demo"
version = sys.argv[2] if len(sys.argv) > 2 else None
if version is None:
    version = storage.read_json(storage.join(root, "releases", "latest.json"))["version"]
folder = storage.join(root, "releases", version)
manifest = storage.read_json(storage.join(folder, "manifest.json"))

print(f"release {version}, {manifest['license']}, {manifest['created'][:10]}")
for file in manifest["files"]:
    if "rows" not in file:  # the card, pictures, the description for machines
        continue
    print(f"\n{file['path']}: {file['rows']:,} pairs")
    with storage.open(storage.join(folder, manifest["build"], file["path"])) as opened:
        first = pq.read_table(opened).slice(0, 1).to_pylist()[0]
    print(f"{first['spscore']:.3f}  {first['source']}\n       {first['paraphrase']}")
