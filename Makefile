# `make demo` and `make test` do all the set-up they need.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test lint slow browser screenshots chromium frontend frontend-check faults machines fuzz docs wheel oldest release sbom audit hashes bench bench-check coverage clean

setup: .venv/ready

.venv/ready: requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dccm needs Python 3.11 or later; name one with make PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

demo: setup
	rm -rf dccm-demo
	$(BIN)/dccm demo -o dccm-demo

# One thread each: two workers on two cores are faster than four threads on them. Who is done takes over from the other.
test: setup
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -q

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Proofs that take minutes; those on data sets run when DCCM_DATA names the folder that holds them.
slow: setup
	$(BIN)/pytest -q -m 'slow or data' -s

# Kills, full disks, limits, clocks and changing sources, with new seeds all the time; FAULT_SEED repeats one.
FAULT_MINUTES ?= 10
faults: setup
	FAULT_MINUTES=$(FAULT_MINUTES) FAULT_SEED=$${FAULT_SEED:-$$(date +%s)} $(BIN)/pytest -q -s tests/faults

# A run on two machines, which are network namespaces: needs root and iproute2. Some minutes; more on a busy computer.
machines: setup
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -s -m machines tests/machines

# Bytes for everything that reads some; atheris learns which ones lead somewhere. Findings go to fuzz-findings/.
FUZZ_MINUTES ?= 60
fuzz: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --minutes $(FUZZ_MINUTES)

# What people do in the gallery, in headless Chromium; Debian's package is chromium, and $CHROMIUM may name another.
browser: setup
	cd frontend && npm ci --silent --no-fund --no-audit
	$(BIN)/pytest -q -m browser

# The pictures of the front page and the guides, of a run that is made for them; needs chromium.
screenshots: setup
	$(BIN)/python -m tools.screenshots

chromium:
	apt-get update -qq && apt-get install -y -qq chromium

# The page of the gallery is committed as it is built, so that only who changes it needs node.
frontend:
	cd frontend && npm ci --silent --no-fund --no-audit && npm run build

frontend-check:
	rm -rf build/gallery
	cd frontend && npm ci --silent --no-fund --no-audit && npm run build -- --outDir ../build/gallery
	diff -r build/gallery src/dccm/gallery/static
	rm -rf build/gallery

# Ratios of speeds, on an idle machine; bench-check compares them with the committed table.
# What follows the first is forced: it has asked for an idle machine, and is itself what made it busy.
bench: setup
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.load --force
	$(BIN)/python -m benchmarks.features --force

bench-check: setup
	$(BIN)/python -m benchmarks.speed --check
	$(BIN)/python -m benchmarks.load --force --check
	$(BIN)/python -m benchmarks.features --force --check

# The site of the pages in docs/, in build/site; it stops at any link or page that is not there.
docs: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --config-file website/mkdocs.yml

.venv/docs: .venv/ready requirements-docs.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-docs.txt
	touch $@

# What users would install: built, checked, and used for a demo in an empty environment outside of this folder.
wheel: .venv/docs
	$(BIN)/python -m tools.wheel

# The oldest versions of other libraries with which all tests pass; takes an hour.
oldest: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.oldest

# make release VERSION=0.2.0: version, section of the changelog, tag and files; nothing leaves this machine.
release: .venv/docs
	$(BIN)/python -m tools.release $(VERSION)

# What is installed, for those who have to know.
sbom: setup
	$(BIN)/cyclonedx-py environment $(BIN)/python --no-validate --output-reproducible --of JSON -o dccm.cdx.json

# Known vulnerabilities of the pinned set and of all below it; needs the network.
audit: setup
	$(BIN)/pip-audit --requirement requirements.txt --no-deps --disable-pip
	$(BIN)/pip-audit --requirement requirements-hashed.txt --require-hashes --disable-pip

# The pinned set and all below it with hashes, after a pin has changed; needs uv and the network. CONTRIBUTING says why
# torch is left out. No address of an index is written.
hashes:
	grep -v '^torch==' requirements.txt | uv pip compile - --quiet --universal --python-version 3.11 --generate-hashes \
		--no-annotate --no-emit-index-url --no-emit-find-links --custom-compile-command "make hashes" \
		--output-file requirements-hashed.txt

coverage: setup
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -q --cov=dccm --cov-report=term-missing

clean:
	rm -rf .venv dccm-demo
