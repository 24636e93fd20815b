# Everything one does with a clone of restorm. `make help` lists it.

CARGO ?= cargo
PYTHON ?= python3

# Tests that need a server get $MONGODB_URI where it is set, otherwise a mongod of their own.
WITH_MONGOD = if [ -z "$$MONGODB_URI" ]; then \
	MONGOD=$$($(PYTHON) scripts/mongod.py path) || exit 1; export MONGOD; fi

# The tests of the metrics run one where there is one or Debian's package can be had.
WITH_PROMETHEUS = PROMETHEUS=$$($(PYTHON) scripts/prometheus.py path) && export PROMETHEUS \
	|| unset PROMETHEUS

# How long each fuzzer runs.
SECONDS ?= 600

.DEFAULT_GOAL := help
# How often `make soak` kills a restore, and how many simulated ones it runs.
KILLS ?= 200
SOAK_SEEDS ?= 3000

.PHONY: help demo build test test-matrix sim mangle fuzz soak lint check bench reproduce-restore reproduce-sink reproduce-reads docs clean

help: ## List these targets
	@sed -n 's/^\([a-z-]*\): .*## /\1\t/p' Makefile | while IFS='	' read -r name text; do \
		printf '%-17s %s\n' "$$name" "$$text"; done

demo: ## Restore a sample dump into a server made for it, and clean up
	@$(PYTHON) scripts/demo.py

build: ## Build the optimised binary, target/release/restorm
	$(CARGO) build --release --locked

test: ## Run all tests, those against a real server included
	@$(WITH_MONGOD); $(WITH_PROMETHEUS); set -x; $(CARGO) test --locked

test-matrix: ## Run the tests against servers of each version: ARGS="--versions 4.2.6,5.0.4"
	@$(PYTHON) scripts/matrix.py $(ARGS)

sim: ## Restore into faulty and forgetful targets: SEED=n for one seed, SEEDS=n for many
	RESTORM_SEED=$(SEED) RESTORM_SEEDS=$(SEEDS) $(CARGO) test --locked --test offline -- simulation killed

mangle: ## Read mangled dumps: SEED=n for one seed, SEEDS=n for many
	RESTORM_SEED=$(SEED) RESTORM_SEEDS=$(SEEDS) $(CARGO) test --locked --test offline mangling

fuzz: ## Look for broken promises with changed seeds of each fuzzer: SECONDS=600
	RESTORM_FUZZ_SECONDS=$(SECONDS) $(CARGO) test --locked --release --test offline \
		changed_seeds -- --nocapture

soak: ## Kill restores again and again, and simulate many more: KILLS=200 SOAK_SEEDS=3000
	@$(WITH_MONGOD); set -x; RESTORM_KILLS=$(KILLS) $(CARGO) test --locked --test server -- \
		killed_at_any_moment resume:: durability:: failovers faults:: rejects::
	RESTORM_SEEDS=$(SOAK_SEEDS) $(CARGO) test --locked --test offline -- simulation killed

lint: ## Check the formatting and run clippy, where they are installed
	@if $(CARGO) fmt --version >/dev/null 2>&1; then set -x; $(CARGO) fmt --check; \
		else echo "rustfmt is not installed: formatting is not checked"; fi
	@if $(CARGO) clippy --version >/dev/null 2>&1; then set -x; \
		$(CARGO) clippy --locked --all-targets -- -D warnings; \
		else echo "clippy is not installed: lints are not checked"; fi

check: lint test ## What CI runs: lint and test

bench: ## Measure restores; arguments in ARGS, such as ARGS="--case gzip --rounds 5"
	@$(PYTHON) scripts/bench.py $(ARGS)

reproduce-restore: ## Restore 20 collections with and without the journal: ARGS=--full for all of it
	@$(PYTHON) scripts/reproduce.py restore $(ARGS)

reproduce-sink: ## Write 71-byte documents for ten minutes and look for losses: ARGS="--rate flat-out"
	@$(PYTHON) scripts/reproduce.py sink $(ARGS)

reproduce-reads: ## Read random documents over more and more connections: ARGS=--full for all of it
	@$(PYTHON) scripts/reproduce.py reads $(ARGS)

docs: ## Build the documentation of the library, target/doc/restorm
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps

clean: ## Remove what was built; the mongod in .cache stays
	$(CARGO) clean
