# Each target does its own set-up: a virtual environment in .venv, made once and renewed when pyproject.toml changes.
# Needed beforehand: Python 3.11 or newer (any of the names below, or PYTHON=/path/to/python), make, git, a C compiler to run kernels.

VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= auto
CODE := cli graph importers ir lowering studies verify
BESIDE := $(foreach folder,tests benchmarks examples docs,$(if $(wildcard $(folder)/*.py),$(folder)))

# The tests start hundreds of commands: those load three times as fast where Python may keep what it compiled.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test lint format bench shares studies docs playground pages campaign browser oclgrind wild mlir integers proofs recheck clean distclean

help:
	@echo 'make demo      the tool in thirty lines: a layout, its proof, a refutation, two kernels'
	@echo 'make test      the tests (some five minutes on two cores)'
	@echo 'make lint      style, types, import contracts'
	@echo 'make format    rewrite the sources in the house style'
	@echo 'make bench     the measurements'
	@echo 'make shares        which share of each kind of claim the kernel accepts, and what it does not (some minutes)'
	@echo 'make studies   the studies of padding policies under docs/studies (half an hour on two cores)'
	@echo 'make docs      the documentation as a site, in docs/_build/html'
	@echo 'make playground  the page on which maps are decided in a browser, in docs/_build/playground (PYODIDE=DIR: with Pyodide from a folder)'
	@echo 'make pages     what documents, examples and the action say, done as their readers do'
	@echo 'make campaign  the long random runs that make test leaves out'
	@echo 'make browser   the HTML report in a headless Chromium (needs chromium and its driver)'
	@echo 'make oclgrind  the generated OpenCL kernels in a simulator that tells of races and of accesses out of bounds (needs oclgrind)'
	@echo 'make wild      real bugs of public compilers: each is refuted, and its repair proved (some minutes); writes docs/wild.md'
	@echo 'make mlir      random functions of MLIR run here and by LLVM, and what docs/wild-mlir.md says of mlir-opt (needs mlir-19-tools)'
	@echo 'make integers  two implementations of the arithmetic of the kernel on 10,000 damaged proofs (and Coq, if coqc is installed)'
	@echo 'make proofs    write the lemmas under proofs/ anew; make recheck checks everything there with two solvers'
	@echo 'make clean     remove caches and build outputs; make distclean removes the virtual environment too'

demo: $(VENV)/.ready
	@$(BIN)/layoutproof demo

test: $(VENV)/.ready-dev
	@$(BIN)/python -m pytest -n $(WORKERS) --maxprocesses=8 --dist=worksteal

pages: $(VENV)/.ready-dev
	@$(BIN)/python -m pytest -n $(WORKERS) --maxprocesses=8 --dist=worksteal -m pages

campaign: $(VENV)/.ready-dev
	@$(BIN)/python -m pytest -n $(WORKERS) --maxprocesses=8 --dist=worksteal -m campaign --hypothesis-profile=campaign
	@$(BIN)/python -m tests.random.map_campaign
	@$(BIN)/python -m tests.random.layout_campaign
	@$(BIN)/python -m tests.oracle.layouts --fresh
	@$(BIN)/python -m tests.attack.campaign --fresh
	@$(BIN)/python -m tests.oracle.thread_kernels --kernels 10000
	@$(BIN)/python -m tests.oracle.thread_sync --kernels 3000
	@$(BIN)/python -m tests.oracle.thread_mutants
	@$(BIN)/python -m tests.attack.kernel_steps --mutants 5000
	@$(BIN)/python -m tests.oracle.async_kernels --kernels 10000
	@$(BIN)/python -m tests.oracle.warp_tiles --changes 1000
	@$(BIN)/python -m tests.attack.kernel_campaign --damaged 10000 --workers 2
	@$(BIN)/python -m tests.attack.kernel_campaign --seconds 3600 --workers 2
	@$(BIN)/python -m tests.oracle --fresh
	@$(BIN)/python -m tests.oracle.integers --fresh
	@if command -v mlir-opt mlir-opt-19 > /dev/null; then $(BIN)/python -m tests.oracle.mlir_campaign --programs 10000; fi
	@$(BIN)/python -m tests.studies.brute_force --cells 200

studies: $(VENV)/.ready-dev
	@for study in operators semantics rfc77 network; do $(BIN)/layoutproof study $$study -o docs/studies/$$study || test $$? -eq 3 || exit 1; done

browser: $(VENV)/.ready-dev
	@$(BIN)/python -m pytest -m browser tests/browser

oclgrind: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.lowering.runtime.opencl.under_oclgrind

wild: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.wild --write docs/wild.md

mlir: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.oracle.mlir_campaign --programs 200
	@$(BIN)/python -m pytest -q -m '' tests/oracle/hunt/test_mlir_wild.py tests/oracle/test_mlir.py

integers: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.oracle.integers

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy $(BESIDE)
	$(BIN)/lint-imports

format: $(VENV)/.ready-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

proofs: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.own_proofs proofs
	@$(BIN)/python -m layoutproof.verify.certificate.lawbook proofs/laws

recheck: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.own_proofs --check proofs
	@mkdir -p build/certificates
	@for name in row_sum conv2d; do \
	  $(BIN)/layoutproof check examples/programs/$$name.py --trace examples/$$name.json \
	    --certificate build/certificates/$$name.lpcert.json > build/certificates/$$name.txt || exit; \
	done
	@$(BIN)/python examples/matmul_tiles.py build/certificates/matmul_tiles.lpcert.json > build/certificates/matmul_tiles.txt
	@$(BIN)/layoutproof recheck proofs build/certificates

bench: $(VENV)/.ready-dev
	@$(BIN)/python -m benchmarks

shares: $(VENV)/.ready-dev
	@$(BIN)/python -m benchmarks.kernel_share --workers 2

docs: $(VENV)/.ready-docs
	@$(BIN)/python -m sphinx --nitpicky --fail-on-warning --keep-going --quiet -b html docs docs/_build/html
	@$(BIN)/python -m docs.playground_files docs/_build/html/playground $(if $(PYODIDE),--pyodide '$(PYODIDE)')
	@echo 'docs/_build/html/index.html'

playground: $(VENV)/.ready
	@$(BIN)/python -m docs.playground_files docs/_build/playground $(if $(PYODIDE),--pyodide '$(PYODIDE)')

clean:
	rm -rf build dist docs/_build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .grimp_cache htmlcov .coverage .coverage.*
	find $(CODE) src tests benchmarks examples docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean
	rm -rf $(VENV)

# An environment that works is kept; one that does not (half made, or its Python is gone) is made anew. A Python that is too old, or that cannot
# make environments (ensurepip is a package of its own on Debian), is passed over. One that was asked for by name is used or refused, never replaced.
CANDIDATES := $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python3.14)

define make_environment
@if [ -z "$(PYTHON)" ] && $(BIN)/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then exit 0; fi; \
for python in $(CANDIDATES); do \
	if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
		echo "setting up $(VENV) with $$("$$python" --version) (a minute or two, once)"; \
		exec "$$python" -m venv --clear $(VENV); \
	fi; \
done; \
echo "layoutproof needs Python 3.11 or newer that can make virtual environments." >&2; \
for python in $(CANDIDATES); do \
	if version=$$("$$python" --version 2>/dev/null); then echo "  $$python is $$version: too old, or without venv and ensurepip" >&2; \
	else echo "  $$python: not found" >&2; fi; \
done; \
echo "Install one (on Debian and Ubuntu: python3 and python3-venv), or name it: make PYTHON=/path/to/python ..." >&2; \
exit 1
endef

# An editable install is asked for the package only after every folder of the path. A script beside a clone that is called
# `layoutproof` would import that folder, empty; so `src`, which has the package as such, is on the path, too.
define install
@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable $(1)
@$(BIN)/python -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_path("purelib"), "layoutproof-source.pth").write_text(str(pathlib.Path("src").resolve()) + "\n")'
endef

$(VENV)/.ready: pyproject.toml
	$(make_environment)
	$(call install,.)
	@touch $@

$(VENV)/.ready-dev: pyproject.toml
	$(make_environment)
	$(call install,'.[dev]')
	@touch $(VENV)/.ready $(VENV)/.ready-docs $@

$(VENV)/.ready-docs: pyproject.toml
	$(make_environment)
	$(call install,'.[docs]')
	@touch $(VENV)/.ready $@
