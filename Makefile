# make demo    scores the sample pairs and shows some of them (installs what it needs first)
# make demo-train  runs the whole pipeline, small: vocabulary, tokenizer, three stages, paraphrases (adds PyTorch)
# make writer  makes the model that gaixie paraphrase uses, once: 1.1 GB to download, 8 GB of memory, some minutes
# make paraphraser  trains and evaluates a pretrained model by LoRA (needs DATA and a GPU, or days); can be resumed
# make test    runs every test except the long ones: 3 minutes on two cores, 8 on two threads of one
# make test-long   runs the long ones (as long again): on a Spark cluster, under DeepSpeed, in a browser, of the whole pipeline
# make test-fast   runs the tests that need no Java, no PyTorch and no server: a minute or two
# make bench   measures speed (needs DATA; PAIRS sets the size)
# make bench-serve   measures how fast the service answers over HTTP
# make lint    checks style and types
# make constraints  takes the newest versions that fit pyproject.toml; run all tests afterwards
# make locks   pins what the images install, by SHA-256, after make constraints; make sbom lists it as CycloneDX
# make clean   removes the environment and what make builds, but nothing under out/
# make dist    builds the archive for a cluster's nodes (PYTHON_PREFIX: the prefix of their Python)
# make model   fits the model that ships with the package again (needs DATA)

PYTHON ?= python3
DATA   ?= ../shared/data
PAIRS  ?= 2000000
BIN    := .venv/bin
INSTALL = PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --constraint infra/constraints.txt

# The tests start many processes; with byte code, none compiles all of Gaixie, pytest and hypothesis again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: constraints locks sbom demo demo-train writer paraphraser test test-long test-fast bench bench-serve lint model dist clean
.DELETE_ON_ERROR:

# Empties a folder that make has made before, and no other.
define fresh
	@test ! -e $(1) || test -e $(1)/.made-by-make || { echo "$(1): make did not make this folder; move it away" >&2; exit 2; }
	@rm -rf $(1) && mkdir -p $(1) && touch $(1)/.made-by-make
endef

demo: .venv/.spark
	$(call fresh,out/demo)
	$(BIN)/python jobs/score_corpus.py --config examples/demo.yaml
	$(BIN)/python jobs/show_run.py out/demo --run-id demo --pairs 10

demo-train: demo .venv/.train
	$(call fresh,out/demo-train)
	$(BIN)/python jobs/build_vocabulary.py --input examples/pairs.jsonl --column source --column paraphrase --output out/demo-train/vocabulary
	$(BIN)/python training/tokenize_text.py make out/demo-train/vocabulary/vocabulary.tsv --output out/demo-train/tokenizer --common-characters
	$(BIN)/accelerate launch --quiet --config_file conf/accelerate/cpu.yaml training/curriculum.py --config examples/demo-train.yaml $(TRAIN)
	head -3 examples/pairs.jsonl > out/demo-train/three.jsonl
	@echo "A model of this size, trained on 288 pairs, writes nonsense; its scores say so:"
	-$(BIN)/python training/paraphrase.py --model out/demo-train/run/model out/demo-train/three.jsonl

writer: .venv/.paraphrase
	$(BIN)/python training/make_writer.py

R := out/paraphraser
BASE ?= qwen2.5-coder-1.5b

paraphraser: .venv/.spark .venv/.train
	$(BIN)/python research/prepare_paraphraser.py $(DATA) $(R)/data
	$(BIN)/python jobs/score_corpus.py --config examples/paraphraser.yaml --resume
	test -d $(R)/base || $(BIN)/python training/bases.py $(BASE) --text $(R)/data/sentences.parquet --output $(R)/base
	$(BIN)/accelerate launch --quiet training/curriculum.py --config conf/paraphraser.yaml
	$(BIN)/python training/evaluate.py $(R)/data/held-out.parquet --limit 200 --system written --model ours=$(R)/run/model --draws 8 --code 4 --tier full --min-meaning 0.75 --precision bfloat16 --metrics spscore:tier=full,spscore-meaning:tier=full,self-bleu --cases 20 --output $(R)/evaluation

# A lost process ends the run, which names its test; a test that hangs ends its process (pyproject.toml).
PYTEST := $(BIN)/python tests/support/warm_up.py && $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder --max-worker-restart 0

test: .venv/.test
	$(PYTEST) -m "not long"

test-long: .venv/.test
	$(PYTEST) -m long

test-fast: .venv/.test
	$(PYTEST) --fast

bench: .venv/.bench
	$(BIN)/python research/benchmarks/bench.py --data $(DATA) --pairs $(PAIRS)
	$(BIN)/python research/benchmarks/bench_clusters.py --data $(DATA) --sentences 1000000

bench-serve: .venv/.bench
	$(BIN)/python research/benchmarks/bench_serve.py --data $(DATA)

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	mkdir -p build/types && ln -sfn ../.. build/types/gaixie
	$(BIN)/mypy --no-error-summary

model: .venv/.base
	$(BIN)/python research/fit_spscore.py --config conf/spscore.yaml --data $(DATA) --output udfs/models/spscore-zh

dist: .venv/.spark
	$(BIN)/python infra/dist.py $(if $(PYTHON_PREFIX),--python-prefix $(PYTHON_PREFIX))

constraints: .venv/.test
	$(BIN)/python -m pip install --quiet --upgrade --upgrade-strategy eager --editable '.[test]'
	{ sed '/^[^#]/,$$d' infra/constraints.txt; $(BIN)/python -m pip freeze --all --exclude-editable --exclude pip; } > infra/constraints.new
	mv infra/constraints.new infra/constraints.txt

locks: .venv/bin/python
	$(BIN)/python -m pip install --quiet uv
	PATH="$(CURDIR)/$(BIN):$$PATH" sh infra/docker/locks.sh

sbom: .venv/bin/python
	$(BIN)/python -m pip install --quiet cyclonedx-bom
	mkdir -p dist
	for lock in infra/docker/*.lock; do \
	  $(BIN)/cyclonedx-py requirements --output-file "dist/$$(basename "$$lock" .lock).sbom.json" "$$lock" || exit; \
	done

clean:
	rm -rf .venv build dist bench.json

# One environment; each stamp says which extra it has. PyTorch comes with the extras that need it.
.venv/bin/python:
	sh infra/java.sh
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

.venv/.base: .venv/bin/python pyproject.toml infra/constraints.txt
	$(INSTALL) --editable .
	$(BIN)/python -m gaixie.udfs.spscore
	touch $@

.venv/.%: .venv/.base
	$(INSTALL) --editable '.[$*]'
	touch $@
