#!/bin/sh
# Writes what each image installs: versions with the SHA-256 of their files, from which pip takes
# nothing else. Wants uv; the versions are those of infra/constraints.txt, but for the train image,
# whose PyTorch is CUDA's.   sh infra/docker/locks.sh
set -eu
cd "$(dirname "$0")/../.."

lock() { # NAME PYTHON [OPTION…]: requirements from standard input
    name=$1 python=$2
    shift 2
    uv pip compile - --quiet --generate-hashes --python-version "$python" --no-header \
        --no-annotate --no-emit-index-url --output-file "infra/docker/$name.lock" "$@" >/dev/null
}

of() { python3 infra/docker/requirements.py "$@"; }

of spark | lock score 3.11 --constraint infra/constraints.txt
of serve | lock serve 3.11 --constraint infra/constraints.txt
of serve,train --without deepspeed | lock serve,train 3.11 --constraint infra/constraints.txt
lock train 3.12 <infra/docker/train-requirements.txt
