# `make help` lists the targets. A fresh machine needs Python 3.11, and Java 17 for what starts Spark; everything else
# goes into .venv.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN   := .venv/bin
STAMP := .venv/.set-up
NEEDS_MB := 4000

# What the caller's shell exports must not reach into the environment: other interpreters, other Sparks, other options.
# Without bytecode each process would compile all that it imports, which takes seconds.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONOPTIMIZE PYTHONWARNINGS VIRTUAL_ENV CONDA_PREFIX PYTEST_ADDOPTS
unexport PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX
unexport SPARK_HOME SPARK_CONF_DIR SPARK_MASTER PYSPARK_PYTHON PYSPARK_DRIVER_PYTHON PYSPARK_SUBMIT_ARGS
unexport NUMBA_DISABLE_JIT NUMBA_BOUNDSCHECK COVERAGE_PROCESS_START AIRFLOW_HOME AIRFLOW__CORE__DAGS_FOLDER
unexport UV_PROJECT_ENVIRONMENT UV_CONSTRAINT UV_OVERRIDE PIP_TARGET PIP_PREFIX PIP_USER PIP_REQUIRE_VIRTUALENV
export PYTHONUTF8 := 1

# Tests in the order of their price: meaning first (seconds, no JVM), then everything between, engine and jobs last.
FAST := $(wildcard pipelines expectations tests/operators tests/flows tests/shape tests/expectations)
LAST := $(wildcard tests/engine tests/laws tests/jobs tests/cli tests/end_to_end)
REST := $(filter-out $(FAST) $(LAST) %/__pycache__,$(patsubst %/,%,$(wildcard tests/*/)) $(wildcard tests/test_*.py))
TESTS := $(FAST) $(REST) $(LAST)
# Beside the others, behind Airflow's: the demo, a cluster, processes of their own, brokers, sockets and disks, and what
# needs no Spark, so that both end at about the same time.
BESIDE := tests/dags tests/end_to_end tests/docs tests/jobs/proofs/test_order_cases.py tests/jobs/proofs/test_emulator.py \
  $(wildcard $(addprefix tests/laws/test_,kills.py stream_kills.py relations_kills.py two_streams.py cluster.py ended_services.py stores.py) \
  $(addprefix tests/laws/test_,regions.py regions_kills.py loops.py instances.py) \
  $(addprefix tests/engine/,buffers/test_buffers.py commits/test_commits.py commits/test_housekeeping.py \
  commits/test_lease.py landing/test_compaction.py landing/test_landing.py \
  $(addprefix sources/test_,socket_feed.py spool.py)) \
  $(addprefix tests/jobs/commands/test_,doctor.py kept.py legs_checked.py legs_mended.py legs_replayed.py legs_reported.py legs_reset.py))
DRILLS := $(wildcard tests/jobs/drill/test_*.py)
DRILLS_BESIDE := $(wildcard $(addprefix tests/jobs/drill/test_drill_,neighbours.py power.py store.py clock.py))
APART := $(BESIDE) $(DRILLS)
# Tests write little and sync it often: in memory where there is some, a busy disk does not hold them up.
SCRATCH = $(shell [ -w /dev/shm ] && [ "$$(df -Pm /dev/shm | awk 'NR == 2 { print $$4 }')" -ge 6000 ] && echo /dev/shm || echo "$${TMPDIR:-/tmp}")

.PHONY: help machine java setup demo up down test drill lint types contracts check check-all parity-flows bench diagrams docs pictures clean

help: ## list the targets
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18

# Looks for enough disk; Python is looked for when .venv is made.
machine:
	@fail() { echo "setup: $$1" >&2; exit 1; }; \
	[ -e $(STAMP) ] || { free=$$(df -Pm . | awk 'NR == 2 { print $$4 }'); \
	[ "$$free" -ge $(NEEDS_MB) ] || fail "the disk is too full: the environment and the demo need $(NEEDS_MB) MB here and $$free MB are free; make room and run make again."; }

java: ## look for Java 17, which only what starts Spark needs
	@fail() { echo "java: $$1" >&2; exit 1; }; \
	java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	found=$$("$$java" -version 2>&1 | sed -nE 's/.*version "(1\.)?([0-9]+).*/Java \2/p' | head -n 1) || found=; \
	[ "$$found" = "Java 17" ] || fail "Spark needs Java 17, and '$$java' is $${found:-missing}: \
	install it (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17) and set JAVA_HOME to it, then run make again."

setup: $(STAMP) ## make .venv and install the tested set of versions into it (again only when that set changes)

$(STAMP): pyproject.toml constraints.txt | machine
	@fail() { echo "setup: $$1" >&2; exit 1; }; \
	for python in python3.11 python3 python none; do \
	  "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null && break; done; \
	[ "$$python" != none ] || fail "needs Python 3.11 with its venv module, and no such python3.11 is on PATH: \
	install it (Debian, Ubuntu: python3.11 and python3.11-venv; macOS: brew install python@3.11; else pyenv install 3.11), then run make again."; \
	echo "setup: installing the tested versions into .venv, about a minute"; \
	install() { "$$python" -m venv .venv && $(BIN)/python -m pip install -q -c constraints.txt uv && \
	  $(BIN)/uv pip install -q --python $(BIN)/python -c constraints.txt -e '.[dev]'; }; \
	said=$$(install 2>&1) || { case "$$said" in \
	  *"No space left"*|*"os error 28"*|*"Disk quota"*) fail "the disk is full: make room ($(NEEDS_MB) MB here; uv also fills its cache in $${UV_CACHE_DIR:-~/.cache/uv}), then run make again.";; \
	  *resolution*|*"dns error"*|*"onnection"*|*"ailed to fetch"*|*"error sending request"*|*"timed out"*|*"roxy"*|*"from versions: none"*) \
	    fail "no package index could be reached: connect to the network, or name your mirror in PIP_INDEX_URL and UV_DEFAULT_INDEX, then run make again.";; \
	  *) echo "$$said" | tail -n 20 >&2; fail "installing failed for the reason above: mend it, or start anew with make clean, then run make again.";; esac; }; \
	touch $@

demo: java setup ## run the flights flow and end with a summary and the path of a page to open
	@$(BIN)/pulseline demo

up: java setup ## start Airflow on this machine, with a database of its own; ends with its address and password
	@$(BIN)/pulseline warm-up
	@$(BIN)/python -m dags.local up

down: setup ## end that Airflow, with its tasks and its database
	@$(BIN)/python -m dags.local down

# Runs the tests of $(1) beside those of $(2), and puts their output behind; $(3) comes first.
define side_by_side
	@$(BIN)/pulseline warm-up
	@said=$$(mktemp -d -p $(SCRATCH)); $(3)code=0; \
	$(BIN)/python -m tests.beside --durations=15 --basetemp="$$said/b" $(1) > "$$said/beside" 2>&1 & beside=$$!; \
	trap 'kill -INT $$beside 2>/dev/null && wait $$beside || true; rm -rf "$$said"' EXIT; \
	$(BIN)/python -m pytest --durations=30 --basetemp="$$said/r" $(2) | tee "$$said/rest" || code=$$?; \
	order="beside rest"; wait $$beside || { code=$$?; order="rest beside"; }; \
	cat "$$said/beside"; for each in $$order; do tail -n 1 "$$said/$$each"; done; exit $$code
endef

# Tests in front of a real Airflow mostly wait for it, so they run beside the others.
test: java setup ## run every test but the drills, fast tiers first, Airflow's beside them; pytest's closing line comes last
	$(call side_by_side,$(BESIDE),$(patsubst %.py,--ignore=%.py,$(filter %.py,$(APART))) $(filter-out $(APART),$(TESTS)))

# In two halves that take about as long: most of a drill is one process.
drill: java setup ## ten seeds of each part of the drill (power cuts, kills, neighbours, failing disks, clocks), and planted bugs
	$(call side_by_side,$(DRILLS_BESIDE),$(filter-out $(DRILLS_BESIDE),$(DRILLS)),export TMPDIR="$$said"; )

lint: setup ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup ## mypy, strict, over the tests too
	@$(BIN)/mypy

contracts: setup ## import-linter: who may import whom
	@$(BIN)/lint-imports

check: lint types contracts test drill ## everything CI runs

# Workers of its clusters see no memory disk of ours.
check-all: SCRATCH = $${TMPDIR:-/tmp}
check-all: java lint types contracts ## check with the exhaustive tests, then the coverage of the fast tiers as plain Python
	$(call side_by_side,-m "" $(BESIDE) $(DRILLS_BESIDE),-m "" $(patsubst %.py,--ignore=%.py,$(filter %.py,$(BESIDE) $(DRILLS_BESIDE))) $(filter-out $(BESIDE),$(TESTS)),export PULSELINE_WIDE=1; )
	@NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q --cov --cov-report=term $(FAST)

parity-flows: java setup ## draw 1,000 flows with rows and cuts; stream and backfill must give the same bytes (long)
	@PULSELINE_EXAMPLES=1000 $(BIN)/python -m pytest -q tests/jobs/commands/test_stream.py -k drawn --timeout 0

bench: java setup ## what streams and operators cost, in one table with what each is compared with (three hours, a quiet machine)
	@$(BIN)/pulseline bench all

diagrams: setup ## draw the pictures of docs/operators anew, and the made parts of its pages
	@$(BIN)/python -m docs.diagrams

docs: setup ## make the reference from the code, and build the documentation site into build/site; a broken link fails it
	@$(BIN)/python -m docs.site
	@$(BIN)/python -m docs.measure_house write
	@$(BIN)/zensical build --strict --clean
	@$(BIN)/python -m docs.site check build/site

pictures: java setup ## take the pictures of the docs anew (needs chromium)
	@bash docs/pictures.sh

clean: ## remove the environment and every cache; the tables of runs (.pulseline) stay
	@rm -rf .venv build .cache *.egg-info .coverage* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache metastore_db spark-warehouse derby.log
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
