VENV ?= .venv
PYTHON ?= python3
BIN = $(VENV)/bin
INSTALLED = $(VENV)/.installed
SOURCES = sb3_cesd benchmarks tests build_backend docs examples setup.py _sb3_cesd_rl_zoo3.py

.PHONY: demo test test-slow docs lint format type commit-checks clean

# The whole job, small: skills in a maze through RL Zoo (about 2 minutes on 2 cores), then what each skill does
demo: $(INSTALLED)
	rm -rf demo
	$(BIN)/python -m rl_zoo3.train --algo cesd --env MazeSquareA-v0 --eval-freq -1 --seed 0 -f demo/logs -P
	$(BIN)/python -m sb3_cesd.show demo/logs/cesd/MazeSquareA-v0_1/MazeSquareA-v0.zip --output demo
	@echo "Open demo/skills.html, or demo/skills.png"

test: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

# The rest: what takes more than a few seconds, and what methods share with each of them
test-slow: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m slow

# Warnings are errors: a link that leads nowhere, an unknown name
docs: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -q -E -W --keep-going docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

lint: $(INSTALLED)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

# First the names of methods that type checkers see
format: $(INSTALLED)
	$(BIN)/python tests/make_method_names.py
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

type: $(INSTALLED)
	$(BIN)/mypy

commit-checks: format type lint

$(INSTALLED): setup.py pyproject.toml constraints.txt build_backend/build_backend.py $(wildcard *sb3_cesd_rl_zoo3.*)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	# First and pinned, so that pip takes the CPU build where an index offers one: others bring gigabytes of CUDA
	$(BIN)/python -m pip install --quiet -c constraints.txt torch==2.13.0
	# From Python 3.13 on: dm_control by itself, as labmaze has no wheel (see setup.py)
	if $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 13))'; then \
		$(BIN)/python -m pip install --quiet --no-deps -c constraints.txt dm_control; fi
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .[tests,benchmarks,docs,dreamer]
	touch $(INSTALLED)

clean:
	rm -rf $(VENV) build dist docs/_build demo *.egg-info .pytest_cache .ruff_cache .mypy_cache
