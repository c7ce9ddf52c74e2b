# Every target makes .venv when it is missing; uv is used when it is there, plain venv and pip otherwise.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready

.PHONY: demo test lint check hermes bench agents soak clean

demo: $(STAMP)
	$(BIN)/turngate demo

test: lint check

check: $(STAMP) hermes
	$(BIN)/python -m pytest -n 2 --dist loadfile

# The real agent, in an environment of its own that is kept; where it cannot be had, its tests say so and are skipped.
hermes: $(STAMP)
	@$(BIN)/python tests/hermes/hermes_environment.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# CORPUS names a folder in the corpus format (docs/benchmarks.md); without it, the benchmarks that need none run.
bench: $(STAMP)
	$(BIN)/python -m bench all $(CORPUS)

# Claude Code, Codex, opencode and Gemini CLI, unmodified, behind the proxy; needs Node.js, and 1 GB for what npm brings.
agents: $(STAMP)
	$(BIN)/python -m agents

# Ten minutes of mixed traffic through the proxy: memory and open files must stay flat.
soak: $(STAMP)
	$(BIN)/python -m bench proxy --soak 600

$(STAMP): pyproject.toml
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv -q --allow-existing --python "$(PYTHON)" .venv && uv pip install -q --python $(BIN)/python -e '.[code]' --group dev; \
	else \
	  $(PYTHON) -m venv .venv && $(BIN)/python -m pip install -q --upgrade 'pip>=25.1' && $(BIN)/python -m pip install -q -e '.[code]' --group dev; \
	fi
	@touch $@

clean:
	rm -rf .venv .venv-hermes .agents build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
