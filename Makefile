# Two commands to know: `make run` and `make test`. Each sets up what it needs in .venv.
PYTHON ?= python3
CORES ?= all
STUDY ?=
# Each study has a folder of its own, results/<name of its file>; OUT names another one.
OUT ?=
PROFILE ?=
# A profile for a cluster names the executor that submits jobs, whose lock is installed too.
# A word of the shell, whatever is in it: spaces, and apostrophes too.
quoted = '$(subst ','\'',$(1))'
EXECUTOR = $(if $(PROFILE),$(shell $(PYTHON) -I workflow/executor.py $(call quoted,$(PROFILE))))
ARGAND = .venv/bin/python -m argand
PLACE = $(if $(PROFILE),--profile=$(call quoted,$(PROFILE)),--cores $(CORES))
GIVEN = $(if $(OUT),--out=$(call quoted,$(OUT))) $(PLACE) $(if $(STUDY),$(call quoted,$(STUDY)))
# A worker more than there are cores, because one waits for Slurm and for jobs most of the time. Each
# takes some seconds of a core to collect the tests.
PYTEST_FLAGS ?= -n $(shell expr $$(nproc) + 1) --dist worksteal
ATTACK ?=
A ?=
B ?=
COMPARE ?=

.PHONY: help run check report compare test test-frameworks test-all lint example bench attack lock setup setup-dev clean

help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 24

run: setup ## the study (STUDY=path.yaml CORES=8 or PROFILE=profiles/slurm) to products, tables, figures in results/<study> (OUT=path)
	@$(ARGAND) run $(GIVEN)

check: setup ## the study's mistakes, all at once, or what each step will need of disk, memory and time, and what comes out; runs nothing
	@$(ARGAND) check $(GIVEN)

report: setup ## the report of a study again, from what a run left
	@$(ARGAND) report $(GIVEN)

compare: setup ## what changed from A to B (A=before B=results/config COMPARE="--margin 10"); fails where B is slower or less accurate
	@$(ARGAND) compare $(COMPARE) -- $(call quoted,$(A)) $(call quoted,$(B))

# Not by $(MAKE): a dry run would run them. The tests wait often enough for the linters to cost little.
test: setup-dev ## linters beside the short run of the tests: minutes
	@make --no-print-directory lint & linters=$$!; \
	.venv/bin/python -m pytest $(PYTEST_FLAGS); status=$$?; \
	wait $$linters || { status=1; echo "The linters failed: what they said is above, among the tests"; }; \
	exit $$status

test-frameworks: ## the tests of calls from JAX, on its CPU; installs it too
	@PYTHON=$(PYTHON) envs/setup.sh dev frameworks
	.venv/bin/python -m pytest -n 2 tests/kernels/frameworks -k jax

test-all: lint ## linters and every combination of every test, kernels for every architecture: for nights and GPUs
	ARGAND_TESTS=all .venv/bin/python -m pytest $(PYTEST_FLAGS)

lint: setup-dev ## ruff, mypy, snakefmt, snakemake --lint
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/snakefmt --check --compact-diff Snakefile workflow/rules
	.venv/bin/snakemake --lint

example: setup ## fetch the published data of an example (NAME=hera) and run its study
	.venv/bin/python -m tools.examples $(NAME)
	$(MAKE) run STUDY=examples/$(NAME).yaml

bench: setup ## memory of calls and jobs on this machine's CPU, speed of files, time of the default study
	.venv/bin/python -m benchmarks.ratios

attack: setup ## kills, full disks, damaged and hostile files, nasty calls: what slips (ATTACK="--minutes 10 --seed 1 --only NAME")
	.venv/bin/python -m benchmarks.attack $(ATTACK)

lock: ## resolve the lists of pyproject.toml again into envs/*.txt
	envs/lock.sh

setup:
	@PYTHON=$(PYTHON) envs/setup.sh run $(EXECUTOR)

setup-dev:
	@PYTHON=$(PYTHON) envs/setup.sh dev

clean: ## remove results and caches, keep .venv
	rm -rf results comparison .snakemake .mypy_cache .pytest_cache .ruff_cache
