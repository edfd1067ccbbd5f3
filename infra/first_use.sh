#!/usr/bin/env bash
# How long a newcomer waits: the paths of docs/first-steps.md, in a fresh clone with an environment of its own.
#   infra/first_use.sh FOLDER     a new one, which stays
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
port=8123

timed() { # NAME COMMAND…
    TIMEFORMAT="$1: %R s, of which %U s of a processor"
    shift
    time "$@"
}

install() {
    python3 -m venv .venv
    .venv/bin/python -m pip install --quiet --constraint infra/constraints.txt --editable '.[serve]'
}

# What the page shows first: its example, with reasons.
page() {
    gaixie serve --port $port 2>serve.log &
    until curl -sf "127.0.0.1:$port/ready" >/dev/null; do kill -0 $! && sleep 0.1; done
    curl -sf "127.0.0.1:$port/v1/score" -H 'Content-Type: application/json' -d '{"explain": true, "pairs": [
        {"source": "她嘴上说不在意，转过身去，眼泪却断了线似的往下掉。",
         "paraphrase": "她说她不在乎，但是当她转过身来时，她的眼泪止不住地流了下来。"}]}'
    echo
    kill $!
    wait $! || true
}

git clone -q "$here" "$1"
cd "$1"
unset PYTHONPATH
export GAIXIE_CACHE_DIR="$PWD/.cache"
timed "pip" install
export PATH="$PWD/.venv/bin:$PATH"
timed "kernels" python -m gaixie.udfs.spscore
timed "a scored pair" page
timed "a scored file" python - <<'END'
import gaixie
import pandas

pairs = pandas.read_json("examples/pairs.jsonl", lines=True)
gaixie.score(pairs).to_csv("scored.csv")
END
