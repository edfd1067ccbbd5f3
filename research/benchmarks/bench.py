"""How fast, part by part and the whole job, against plain Python in the same run.

    make bench                       2,000,000 real pairs, 44 characters on average
    make bench PAIRS=200000
    python research/benchmarks/bench.py --data FOLDER --pairs 17000000 --grown
    python research/benchmarks/bench.py --data FOLDER --pairs 3000000 --grown --job --tier paper    the job alone
    python research/benchmarks/bench.py --data FOLDER --pairs 200000 --profile    where the time goes

Prints a table and writes bench.json. Units: a core is one core of this machine; `job.pairs_per_s`
counts the job's own steps, from scoring to the manifest; `job.wall_s` is the whole process, the
start of Java and Spark included; `job.core_s_java` and `_python` are what its processes took of all cores,
which other work on the machine hardly changes. `job.peak_rss_mb` is the largest of the job's processes (by kind in
`job.peak_rss_mb_by_process`). `job_s3` is the same job from s3a:// to s3a://, on a SeaweedFS server that
shares this machine's cores.
"""

from __future__ import annotations

import argparse
import cProfile
import importlib.util
import json
import os
import platform
import pstats
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import rjieba

from gaixie.udfs.features import extract_code_points
from gaixie.udfs.meaning import counted, language_model, vectors
from gaixie.udfs.meaning.extract import Resources
from gaixie.udfs.spscore import SPScore
from gaixie.udfs.storage import storage
from gaixie.udfs.storage.manifest import read_run
from gaixie.udfs.text.code_points import to_strings
from gaixie.udfs.text.normalise import normalise_column
from gaixie.udfs.text.pair_id import pair_ids
from gaixie.udfs.text.segmenters.jieba import JiebaSegmenter

sys.path.append(str(Path(__file__).parents[2] / "tests/support"))
from servers import ObjectStore

from gaixie.research.benchmarks import plain
from gaixie.research.benchmarks.bench_metrics import bench_bertscore, bench_metrics
from gaixie.research.benchmarks.pairs import write_pairs

ROOT = Path(__file__).parents[2]
ENCODER = "models/e5-small"
"""What research/make_encoder.py makes; without it BERTScore is not measured."""
SAMPLE = 50_000
BASELINE_ROWS = 4_000
FULL_SAMPLE = 1_000


def best_rate(rows: int, work, repeats: int = 5) -> float:
    """Rows a second of the fastest of some repeats: the code's speed, not the machine's mood."""
    work()
    return rows / min(_timed(work) for _ in range(repeats))


def _timed(work) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def bench_parts(pairs: Path, model: str | None) -> dict[str, dict[str, float]]:
    """Each part alone, on one core, warm."""
    table = pq.read_table(sorted(pairs.glob("*.parquet"))[0]).slice(0, SAMPLE)
    source, paraphrase = (table[name].combine_chunks() for name in ("source", "paraphrase"))
    segmenter, metric = JiebaSegmenter(), SPScore.load(model)
    (a, _), (b, _) = normalise_column(source), normalise_column(paraphrase)
    words_a, words_b = segmenter.word_ends(a), segmenter.word_ends(b)
    sides, tables = (a, b, words_a, words_b), Resources.load()
    features = metric.features(*sides)
    texts = to_strings(a)
    rows = len(source)
    origin = pa.array(["parallel"] * rows)
    segment = best_rate(rows, lambda: segmenter.word_ends(a))
    rjieba_rate = best_rate(rows, lambda: [rjieba.cut(text) for text in texts], 2)
    return {
        "pairs": {"characters_a_sentence": len(a.values) / rows},
        "normalise": {
            "sentences_per_s_per_core": best_rate(rows, lambda: normalise_column(source))
        },
        "segmenter": {
            "sentences_per_s_per_core": segment,
            "rjieba_sentences_per_s_per_core": rjieba_rate,
            "ratio_to_rjieba": segment / rjieba_rate,
        },
        "kernels": {
            "pairs_per_s_per_core": best_rate(rows, lambda: metric.features(*sides)),
            "eight_features": best_rate(rows, lambda: extract_code_points(*sides)),
            "surface_and_facts": best_rate(rows, lambda: counted.features(*sides)),
            "vectors": best_rate(rows, lambda: vectors.features(*sides, tables.vectors)),
            "language_model": best_rate(
                rows, lambda: language_model.features(a, b, tables.language_model)
            ),
        },
        "prediction": {
            "pairs_per_s_per_core": best_rate(rows, lambda: metric.predict(features)),
        },
        "pair_id": {
            "pairs_per_s_per_core": best_rate(rows, lambda: pair_ids(source, paraphrase, origin))
        },
    }


def bench_full(pairs: Path) -> dict[str, float]:
    """Tier full from texts to outputs, on all cores."""
    table = pq.read_table(sorted(pairs.glob("*.parquet"))[0]).slice(0, FULL_SAMPLE)
    sides = (table["source"].combine_chunks(), table["paraphrase"].combine_chunks())
    metric = SPScore.load("full")
    return {"pairs_per_s_all_cores": best_rate(len(table), lambda: metric.outputs(*sides), 2)}


def bench_tokenizer(pairs: Path, work: Path) -> dict[str, float]:
    """The entity-aligned tokenizer with 60,000 words at most, beside one of characters.

    Encoding a sentence here: normalise, find entities, cut into words, ids, entity table. The
    baseline looks characters up, in compiled code, on one core too.
    """
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    from gaixie.training.modeling.tokenizer import EntityAlignedTokenizer
    from gaixie.training.tokenize_text import CONFIG, encode
    from gaixie.udfs.text.entities import load_settings

    texts = pq.read_table(sorted(pairs.glob("*.parquet"))[0], columns=["source"])
    texts = texts.slice(0, SAMPLE)["source"].to_pylist()
    words = Counter(word for row in JiebaSegmenter().cut(texts) for word in row if word.strip())
    words = [word for word, _ in words.most_common(60_000)]
    tokenizer = EntityAlignedTokenizer.from_words(words, load_settings(CONFIG))
    tokenizer.save_pretrained(work)
    started = time.perf_counter()
    EntityAlignedTokenizer.from_pretrained(work)
    load_s = time.perf_counter() - started
    parts = [texts[start : start + 1_000] for start in range(0, len(texts), 1_000)]
    one_core = best_rate(len(texts), lambda: [tokenizer(part) for part in parts], 2)

    cores = encode(str(work), iter(parts * 10), os.cpu_count())
    next(cores)  # its processes have started
    started = time.perf_counter()
    rows = sum(len(ids) for ids, _ in cores)
    all_cores = rows / (time.perf_counter() - started)

    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    alphabet = {c: k for k, c in enumerate(sorted({c for text in texts for c in text}), 1)}
    characters = Tokenizer(models.WordLevel(alphabet | {"<unk>": 0}, unk_token="<unk>"))
    characters.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    baseline = best_rate(len(texts), lambda: [characters.encode_batch(p) for p in parts], 2)
    return {
        "words": len(words),
        "load_s": load_s,
        "sentences_per_s_per_core": one_core,
        "sentences_per_s_all_cores": all_cores,
        "characters_sentences_per_s_per_core": baseline,
        "ratio_to_characters": one_core / baseline,
    }


def bench_job(pairs: str, output: str, count: int, options: list[str]) -> dict[str, object]:
    """The job as its users run it, in a process of its own, watched from outside."""
    storage.delete(output)
    command = [sys.executable, "jobs/score_corpus.py", "--input", pairs, *options]
    command += ["--origin", "parallel", "--output", output, "--run-id", "bench"]
    started = time.perf_counter()
    job = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    peaks: dict[int, tuple[str, float]] = {}
    spent: dict[int, tuple[str, float]] = {}
    watched = psutil.Process(job.pid)
    while job.poll() is None:
        for process in [watched, *_children(watched)]:
            try:
                name, rss = process.name(), process.memory_info().rss / 2**20
                times = process.cpu_times()
            except psutil.Error:
                continue
            spent[process.pid] = name, times.user + times.system
            if rss > peaks.get(process.pid, ("", 0.0))[1]:
                peaks[process.pid] = (name, rss)
        time.sleep(0.2)
    wall = time.perf_counter() - started
    if job.returncode:
        raise SystemExit(f"the job failed with exit code {job.returncode}")
    by_kind, core_s = defaultdict[str, float](float), defaultdict[str, float](float)
    for pid, (name, rss) in peaks.items():
        # Java's short-lived children still show its memory before they become another program.
        if name.startswith(("java", "python")):
            kind = "java" if name.startswith("java") else "python"
            by_kind[kind] = max(by_kind[kind], rss)
            core_s[f"core_s_{kind}"] += spent[pid][1]
    manifest = read_run(f"{output}/runs/bench")
    seconds = sum(manifest.seconds.values())
    return {
        "pairs": count,
        "pairs_per_s": count / seconds,
        "seconds": manifest.seconds,
        "wall_s": wall,
        **core_s,
        "peak_rss_mb": max(by_kind.values()),
        "peak_rss_mb_by_process": dict(by_kind),
        "rows": manifest.model_dump()["rows"],
        "output_files": len(manifest.files["scored"]),
        "output_mb": sum(file.bytes for file in manifest.files["scored"]) / 1e6,
    }


def bench_s3(pairs: Path, work: Path, count: int, options: list[str]) -> dict[str, object]:
    """The same job from s3a:// to s3a://; the object store's processes share the machine."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    store = ObjectStore(work)
    os.environ.update(store.environment())
    try:
        for file in sorted(pairs.glob("*.parquet")):
            storage.copy(str(file), f"s3a://{store.BUCKET}/pairs/{file.name}")
        root = f"s3a://{store.BUCKET}"
        return bench_job(f"{root}/pairs", f"{root}/out", count, options)
    finally:
        store.stop()


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def profile_worker(pairs: Path, model: str | None) -> None:
    """Where one worker's time goes: the job's own function, over and over the sample."""
    from gaixie.udfs.spark import score_batch

    table = pq.read_table(sorted(pairs.glob("*.parquet"))[0]).slice(0, SAMPLE)
    columns = [table[name].combine_chunks() for name in ("source", "paraphrase")]
    origin = pa.array(["parallel"] * len(table))
    segmenter, metric = JiebaSegmenter(), SPScore.load(model)

    def work() -> None:
        for start in range(0, len(table), 8192):
            batch = [column.slice(start, 8192) for column in (*columns, origin)]
            score_batch(*batch, metric, segmenter, 15, 1000)

    work()
    profile = cProfile.Profile()
    profile.runcall(work)
    pstats.Stats(profile).sort_stats("tottime").print_stats(14)


def show(result: dict) -> None:
    for part, figures in result.items():
        if not isinstance(figures, dict):
            continue
        for name, value in figures.items():
            if isinstance(value, int | float | np.floating):
                shown = f"{value:,.0f}" if value >= 1000 else f"{value:,.1f}"
                print(f"{part + '.' + name:<46}{shown:>16}")
    for part in ("job", "job_s3"):
        if part in result:
            seconds = result[part]["seconds"].items()
            print(f"{part}: {'  '.join(f'{step} {value:.1f} s' for step, value in seconds)}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the WMT outputs")
    parser.add_argument("--pairs", type=int, default=2_000_000)
    parser.add_argument(
        "--grown", action="store_true", help="joined neighbours too, for 17 million"
    )
    parser.add_argument(
        "--work", type=Path, default=ROOT / "out/bench", help="for pairs and output"
    )
    parser.add_argument("--model", help="folder of a fitted SPScore-zh")
    parser.add_argument("--tier", help="what the job sees; the parts are those of core")
    parser.add_argument(
        "--job", action="store_true", help="the job from disk to disk, nothing else"
    )
    parser.add_argument("--profile", action="store_true", help="a worker's profile, nothing else")
    parser.add_argument(
        "--no-s3", dest="s3", action="store_false", help="without the run on an object store"
    )
    args = parser.parse_args()
    pairs = args.work / f"pairs-{args.pairs}{'-grown' if args.grown else ''}"
    if not (pairs / "_SUCCESS").exists():
        print(f"making {args.pairs:,} pairs in {pairs}", file=sys.stderr)
        write_pairs(args.data, pairs, args.pairs, args.grown)
        (pairs / "_SUCCESS").touch()
    if args.profile:
        profile_worker(pairs, args.model)
        return 0
    options = ["--model", args.model] if args.model else []
    options += ["--tier", args.tier] if args.tier else []
    result = {"machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {sys.version[:6]}"}
    if args.job:
        output = args.work / f"output-{args.tier or 'core'}"
        show(result | {"job": bench_job(str(pairs), str(output), args.pairs, options)})
        return 0
    result |= bench_parts(pairs, args.model)
    metrics = bench_metrics(args.data, SAMPLE)
    result |= {f"metric {name}": figures for name, figures in metrics.items()}
    if importlib.util.find_spec("transformers"):
        result["full"] = bench_full(pairs)
        result["tokenizer"] = bench_tokenizer(pairs, args.work / "tokenizer")
    if (ROOT / ENCODER).is_dir() and importlib.util.find_spec("bert_score"):
        result["metric bertscore"] = bench_bertscore(args.data, str(ROOT / ENCODER))
    baseline = plain.pairs_per_s(pairs, args.work / "plain", BASELINE_ROWS, args.model)
    result["baseline"] = {"pairs_per_s": baseline}
    local = bench_job(str(pairs), str(args.work / "output"), args.pairs, options)
    result["job"] = local | {"ratio": local["pairs_per_s"] / baseline}
    if "tokenizer" in result:
        from gaixie.research.benchmarks.bench_stage_data import bench_stage_data

        run = args.work / "output/runs/bench"
        result["stage_data"] = bench_stage_data(str(run), str(args.work / "tokenizer"))
    if args.s3:
        far = bench_s3(pairs, args.work / "store", args.pairs, options)
        far["ratio_to_local"] = far["pairs_per_s"] / local["pairs_per_s"]
        result["job_s3"] = far
    (ROOT / "bench.json").write_text(json.dumps(result, indent=2) + "\n")
    print(result["machine"])
    show(result)
    print("bench.json has the figures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
