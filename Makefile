# Two commands for a fresh machine that has Python (3.11 or later), git and make:
#   make ask Q="why is the checkout pod in namespace shop failing?"
#   make test
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
Q ?= What is broken in this cluster, and why?

# The question reaches the shell as a variable, never as text of a command, and make does not expand it either: it may
# hold quotes, backticks and dollars.
export HOLMES_QUESTION := $(value Q)
unexport Q

.PHONY: ask test test-long check lint types imports docs cluster services unit benchmarks lock clean

ask: $(VENV)/.installed
	@demo=; \
	if [ -z "$$KUBECONFIG$$KUBERNETES_SERVICE_HOST" ] && [ ! -e "$$HOME/.kube/config" ] && \
	  [ ! -e "$$HOME/.holmes/config.yaml" ] && [ ! -e "$$HOME/.holmes/model_list.yaml" ] && \
	  ! env | grep -Eq '^(MODEL|[A-Z_]+_API_KEY)=.'; then \
	  echo "Neither a cluster nor a key is configured: Holmes looks at its recorded demo cluster (--demo)." >&2; demo=--demo; \
	fi; \
	$(BIN)/holmes ask --no-interactive $$demo -- "$$HOLMES_QUESTION"

# What takes long runs in a short form with fixed seeds: fewer examples, kills and rounds. `make test-long` runs it whole,
# and measures coverage, which takes half as long again.
test: check unit

test-long: export HOLMES_TESTS := long
test-long: FAST := coverage run -m pytest
test-long: check unit
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered --sort=cover --fail-under=90

check: lint types imports docs

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed
	$(BIN)/mypy

imports: $(VENV)/.installed
	$(BIN)/lint-imports

docs: $(VENV)/.installed
	$(BIN)/python -m holmes.settings.table --check docs/configuration.md
	$(BIN)/python -m tests.context_rows.table --check docs/context-management.md
	$(BIN)/python -m holmes.diagnosis.table --check docs/rules.md
	$(BIN)/python docs/images/terminal.py --check
	$(BIN)/python -m tests.helm.values_table --check helm/holmes/README.md
	$(BIN)/python -m tests.toolsets.shipped.table --check docs/toolsets

# Builds the binaries of the test cluster, once: minutes when nothing is cached. Where the cluster cannot run, it says
# why in one line and its tests are skipped; continuous integration fails instead.
cluster: $(VENV)/.installed
	$(BIN)/python -m tests.cluster build || test "$$CI" != true

# Installs PostgreSQL, Redis, Prometheus, Alertmanager, exporters and Chromium from Debian's packages where they are
# missing, MCP servers from npm and PyPI, and builds VictoriaLogs from its Go module; without them the same holds.
services: $(VENV)/.installed
	$(BIN)/python -m tests.services build || test "$$CI" != true

# The slow tests run beside the others, on the second core, and are printed after them. They prove properties over many
# examples or start real services: measuring their coverage would take twice the time.
FAST := python -m pytest
unit: $(VENV)/.installed cluster services
	$(BIN)/coverage erase
	@$(BIN)/python -m pytest -m slow --junitxml=$(VENV)/slow.xml > $(VENV)/slow-tests.log 2>&1 & slow=$$!; \
	$(BIN)/$(FAST) -m "not slow" --junitxml=$(VENV)/fast.xml; fast_code=$$?; \
	wait $$slow; slow_code=$$?; cat $(VENV)/slow-tests.log; \
	$(BIN)/python -m tests.summary $(VENV)/fast.xml $(VENV)/slow.xml; \
	test $$fast_code -eq 0 && test $$slow_code -eq 0

benchmarks: $(VENV)/.installed
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/loop.py
	$(BIN)/python benchmarks/context.py
	$(BIN)/python benchmarks/scan.py
	$(BIN)/python benchmarks/diagnosis.py
	$(BIN)/python benchmarks/alerts.py
	$(BIN)/python benchmarks/serving.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/bounds.py

# Hashes of everything, no index addresses. The image gets the same versions, without the development tools and without the
# extra `auth-provider`: kubeconfig files with the deprecated field are for workstations.
lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --all-extras --group dev pyproject.toml --output-file requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --extra kubectl --extra otel --extra pictures --extra server --extra vertex \
	  --constraint requirements.lock pyproject.toml --output-file docker/requirements.lock

clean:
	rm -rf $(VENV) .coverage* .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis dist build

$(VENV)/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Holmes needs Python 3.11 or later: make PYTHON=python3.12 ...")'
	@echo "Installing into $(VENV) (once, one to two minutes) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@$(BIN)/python -m compileall -q holmes
	@touch $@
