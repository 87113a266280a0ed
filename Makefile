# Everything here needs Python 3.11+ with pip, and nothing else of ours.
.PHONY: help demo pipeline reproduce reproduce-quick results test static check nightly soak mutants bench bench-scale docs pages notebooks package goldens clean
.DEFAULT_GOAL := help

# Bytecode is kept, outside of the tree: workers and processes of tests compile nothing again.
export PYTHONPYCACHEPREFIX := $(CURDIR)/.cache/python
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
# A worker more than cores: Spark and sockets wait. All tests of Spark's one session run in the same one.
WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 4 ? n + 1 : 4)))
PYTEST := $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadgroup

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

.venv/.user: pyproject.toml scripts/setup.sh
	@sh scripts/setup.sh user

.venv/.dev: pyproject.toml scripts/setup.sh
	@sh scripts/setup.sh dev

.venv-pipeline/.pipeline: pyproject.toml scripts/setup.sh
	@sh scripts/setup.sh pipeline

.venv-tools/.tools: pyproject.toml scripts/setup.sh
	@sh scripts/setup.sh tools

demo: .venv/.user ## record eight peers, order what they received, compare (TRACE=path: your own file)
	@$(BIN)/antecede demo $(if $(TRACE),--trace "$(TRACE)")

# With Maven a real broker and Delta, in an environment of its own; without it files.
PIPELINE := $(if $(FILES),.venv/.user,$(if $(shell command -v mvn),.venv-pipeline/.pipeline,.venv/.user))

pipeline: $(PIPELINE) ## services, Kafka, Spark, Delta, kills, a page (FILES=1: without a broker)
	@$(dir $(PIPELINE))bin/python -m pipeline $(if $(FILES),--files)

reproduce: .venv/.user ## every paper's evaluation at full scale, beside its figures (PAPER=name: one)
	@$(BIN)/antecede reproduce $(or $(PAPER),all) $(if $(TRACES),--traces $(TRACES))

reproduce-quick: .venv/.user ## the same with small grids, to see that all works
	@$(BIN)/antecede reproduce $(or $(PAPER),all) --quick -o out/reproductions-quick$(if $(PAPER),/$(PAPER))

results: reproduce ## docs/results.md from all reproductions: published values, ours, verdicts
	@$(BIN)/python -m scripts.results_page

test: .venv/.dev ## run the tests but the slow ones (`make check` runs those too)
	@$(PYTEST) -m "not slow and not judged"

check: static .venv/.dev ## format, lint, types, imports, then `make test` and one twelfth of `make nightly`
	@$(BIN)/antecede check --all --quick
	@echo "  tests, and part $(PART) of \`make nightly\`: to repeat them, make check PART=$(PART)"
	@$(PYTEST) --part $(PART)

static: .venv/.dev ## format, lint, types, imports
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

# Each commit checks another twelfth of the slow tests.
PART ?= $(shell echo $$(($$(git rev-list --count HEAD 2>/dev/null || echo 0) % 12)))/12

nightly: .venv/.dev ## all tests but `make soak` and `make mutants`, with random draws (an hour)
	@$(BIN)/antecede check --all
	@ANTECEDE_NIGHTLY=1 $(PYTEST) -m "not judged"

soak: .venv/.dev ## streams killed 20 times a sink, 300 micro-batches (half an hour; Delta and Kafka: after `make pipeline`)
	@$(BIN)/python -m pytest -m soak

mutants: .venv/.dev ## judge every mutant of every protocol (an hour; CLASS=mine.py:CLASS: of your own)
	@$(if $(CLASS),$(BIN)/python -m tools.mutants "$(CLASS)",ANTECEDE_ALL_MUTANTS=1 $(PYTEST) tests/tools/test_mutants.py)

bench: .venv/.dev ## speed, as ratios within one run
	@$(BIN)/python -m bench

bench-scale: .venv/.dev ## Spark batches of up to 100 million rows (SCALE=0.01: a hundredth of them)
	@$(BIN)/python -m bench.scale $(if $(SCALE),--scale $(SCALE)) $(if $(FOLDER),--folder "$(FOLDER)")

docs: .venv-tools/.tools ## the site, in out/site; a broken link fails
	@NO_MKDOCS_2_WARNING=1 .venv-tools/bin/mkdocs build --quiet
	@echo "  the site is in out/site"

pages: .venv/.dev ## rewrite the generated reference pages: command line, event schema, status keys, performance
	@$(BIN)/python -m scripts.pages

notebooks: .venv/.dev ## execute the notebooks of the site anew
	@$(BIN)/python -m scripts.notebooks

package: .venv-tools/.tools ## wheel and source archive in dist/, their metadata checked
	@rm -rf dist
	@.venv-tools/bin/python -m build --outdir dist . >/dev/null
	@.venv-tools/bin/twine check --strict dist/*
	@.venv-tools/bin/python scripts/check_wheel.py dist

goldens: .venv/.dev ## rewrite the expected output of the golden scenarios
	@$(BIN)/python -m pytest -q tests/lab/check --rewrite-scenarios

clean: ## remove what the targets made
	rm -rf .venv .venv-pipeline .venv-tools dist .java .cache out
