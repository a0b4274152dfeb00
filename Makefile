# The loop: make setup, make check, make test. CI runs the same targets (.ci/run).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
# The first of these that is at least 3.11 makes the environment: make setup PYTHON=python3.12
# The system's own comes first: distributions build with profile-guided optimisation, version managers
# mostly without, and that costs the Router a quarter more CPU per request.
PYTHON := /usr/bin/python3 python3 python3.14 python3.13 python3.12 python3.11
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
CODE := vsr tests bench
# More arguments for pytest, the demo and the benchmark: make test ARGS="-k framing"
ARGS :=

# 114 wants every startable function listed by hand. 120 flags a receive inside `except
# SSLWantReadError`, which is how one asks for more bytes. 91x want a checkpoint in every function,
# each of which costs microseconds on the request's path.
FLAKE8_ASYNC := $(BIN)/flake8-async --disable ASYNC114,ASYNC120,ASYNC910,ASYNC911,ASYNC912,ASYNC913
# It is slow, so it reads only files that its rules can be about, and only what changed since it passed.
ASYNC_FILES := $(shell grep -rlwE --include='*.py' 'async|trio|BaseException' $(CODE))

# Show one word per step, and the output of a step only if it fails.
quietly = @printf '%-14s' '$(1)'; \
	if out=$$($(2) 2>&1); then echo ok; else echo FAILED; printf '%s\n' "$$out"; exit 1; fi

.PHONY: help setup demo test test-slow check bench lock \
	check-format check-lint check-async check-types check-imports

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.dev ## install everything into .venv; does nothing while it is up to date
	@:

demo: $(VENV)/.runtime ## start the Router with two demo models on 127.0.0.1:8899
	@exec $(BIN)/vllm-sr demo $(ARGS)

test: $(VENV)/.dev ## run the fast tests
	@$(BIN)/pytest -q -n auto --dist loadfile -m 'not slow' $(ARGS)

test-slow: $(VENV)/.dev ## run the tests that take long
	@$(BIN)/pytest -q -m slow $(ARGS)

check: $(VENV)/.dev ## format, lint, types, import contracts; all of them, even if one fails
	@$(MAKE) --no-print-directory --keep-going check-format check-lint check-async check-types check-imports

bench: $(VENV)/.dev ## measure against Envoy and vllm-router
	@exec $(BIN)/python -m bench $(ARGS)

lock: | $(BIN)/python ## write all lock files anew; UPGRADE=--upgrade lifts every pin
	@$(BIN)/python -m venv $(VENV)/lock
	@$(VENV)/lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	@$(call compile_lock,requirements.lock)
	@$(call compile_lock,requirements-otel.lock,--extra otel --constraint requirements.lock)
	@$(call compile_lock,requirements-dev.lock,--extra dev --constraint requirements-otel.lock)

check-format: $(VENV)/.dev
	$(call quietly,ruff format,$(BIN)/ruff format --check $(CODE))

check-lint: $(VENV)/.dev
	$(call quietly,ruff check,$(BIN)/ruff check $(CODE))

check-async: $(VENV)/.async-checked
	@printf '%-14s%s\n' flake8-async ok

check-types: $(VENV)/.dev
	$(call quietly,mypy,$(BIN)/mypy)

check-imports: $(VENV)/.dev
	$(call quietly,lint-imports,$(BIN)/lint-imports --no-logo)

$(VENV)/.async-checked: Makefile $(VENV)/.dev $(ASYNC_FILES)
	@touch $@.begun; files='$(if $(filter-out %.py,$?),$(ASYNC_FILES),$?)'; \
	if ! out=$$(xargs -n 8 -P "$$(nproc)" $(FLAKE8_ASYNC) <<< "$$files" 2>&1); then \
		printf '%-14s%s\n' flake8-async FAILED "$$out" ''; exit 1; \
	fi; \
	mv $@.begun $@

# The editable install is built with what the lock file holds, so that nothing is unpinned. Byte code is
# compiled as pip does for packages, so that the first start is as fast as the others.
$(VENV)/.runtime: requirements.lock pyproject.toml | $(BIN)/python
	@echo 'installing the Router into $(VENV)'
	@$(PIP_INSTALL) --only-binary :all: --requirement $<
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q vsr
	@touch $@

$(VENV)/.dev: requirements-dev.lock pyproject.toml | $(BIN)/python
	@echo 'installing the Router and its tools into $(VENV)'
	@$(PIP_INSTALL) --only-binary :all: --requirement $<
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q vsr
	@touch $(VENV)/.runtime $@

$(BIN)/python:
	@for python in $(PYTHON); do \
		if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			exec $$python -m venv $(VENV); \
		fi; \
	done; \
	echo 'No Python of version 3.11 or newer found. Install one, or name it: make setup PYTHON=...' >&2; \
	exit 1

# $(1): the file; $(2): what it holds beside the runtime. The build tools come in on stdin.
compile_lock = printf '%s\n' hatchling editables | $(VENV)/lock/bin/uv pip compile \
	--quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url \
	--custom-compile-command 'make lock' $(UPGRADE) $(2) --output-file $(1) pyproject.toml -
