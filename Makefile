# Every target sets up what it needs first; any of them works on a fresh machine, in any order.
SHELL := /bin/bash
# Ansible refuses a locale that is not UTF-8; messages in English
export LC_ALL := C.UTF-8
.DELETE_ON_ERROR:
.PHONY: help qualify robustness methods test test-fast test-long test-pages lint docs benchmark bench-up bench-down clean setup setup-bench setup-pages

BASELINE ?= stable
CANDIDATE ?= backport
# `make robustness` compares the stable kernel with itself unless another drop is named
ROBUST_CANDIDATE ?= stable
ROBUST_ADAPTERS ?= fusion,mraid,vscsi
SUITE ?= adapter
PROFILE ?= quick
BIN := .venv/bin

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1  /p' Makefile | column -t -l 2

setup: ## system packages and .venv
	@ci/setup

setup-bench:
	@ci/setup bench

setup-pages:
	@ci/setup pages

qualify: setup-bench ## qualify a candidate driver drop on the virtual bench; zero when the gate passes
	@$(BIN)/storqual qualify -i inventories/virtual --baseline $(BASELINE) --candidate $(CANDIDATE) --suite $(SUITE) --profile $(PROFILE)

robustness: setup-bench ## faults, recovery and data integrity of a candidate on the virtual bench
	@$(BIN)/storqual qualify -i inventories/virtual --baseline $(BASELINE) --candidate $(ROBUST_CANDIDATE) --suite robustness --profile $(PROFILE) --adapters $(ROBUST_ADAPTERS)

methods: setup-bench ## the five published methods on the virtual bench, each with its report
	@PROFILE=$(PROFILE) ci/methods

test: setup-bench setup-pages ## all tests, the virtual bench, the pages and a share of the long ones included
	@ci/test

test-long: setup-bench ## the long tests: the guard's states on three controllers, provisioning on the bench
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; code=0; \
	    $(BIN)/python -m pytest tests -m long -o junit_family=xunit1 --junitxml "$$log" || code=$$?; \
	    $(BIN)/python -m tests.live record "$$log" && exit $$code

test-fast: setup ## tests of the code itself, in two minutes: no virtual bench, no browser, no whole campaign, no attack
	@$(BIN)/python -m pytest tests -m 'not bench and not long and not pages and not plays and not slow' --numprocesses auto --dist loadfile

test-pages: setup-pages ## reports in Chromium: axe-core, widths, paper, no script; and PDF
	@$(BIN)/python -m pytest tests -m pages

lint: setup ## all linters
	@ci/lint

docs: setup ## the documentation site, in .cache/site; a dead link is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "docs: .cache/site/index.html"

benchmark: setup ## error rates and bench seconds of the gate, from its own simulator
	@$(BIN)/python -m tests.error_rates

bench-up: setup-bench ## power the virtual bench on
	@$(BIN)/ansible-playbook -i inventories/virtual playbooks/bench_up.yml

bench-down: setup-bench ## power the virtual bench off, leaving no process and no socket
	@$(BIN)/ansible-playbook -i inventories/virtual playbooks/bench_down.yml

clean: ## remove the environment, caches and the virtual bench of this checkout (not runs/)
	@if [ -x $(BIN)/ansible-playbook ] && [ -d .cache/bench ]; then $(MAKE) --no-print-directory bench-down; fi
	@rm -rf .venv .cache .mypy_cache .ruff_cache
