# The entry point: `make help` lists what there is.

CARGO   ?= cargo
# Tests mostly wait for a cluster: more of them at once than there are cores.
THREADS ?= 8
NAME    ?= default

TESTBED := target/debug/testbed
XTASK   := target/debug/xtask
export TESTBED_BIN := $(CURDIR)/$(TESTBED)

.DEFAULT_GOAL := help
.PHONY: help generate image test-image release demo demo-down test test-ahead campaign checks advisories test-unit fuzz test-integration test-e2e test-package compat root bench bench-report bench-admission bench-program install up down status testbed clean

BUILT   := docker.io/library/memcached-operator:dev
TARGET  ?= $(shell uname -m)-unknown-linux-musl
# What the image says about itself; a release also says where its source is.
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
SOURCE  ?=
LABELS   = --label org.opencontainers.image.title=memcached-operator \
	--label org.opencontainers.image.description='Runs the caches that people declare as Memcached objects, and keeps them warm' \
	--label org.opencontainers.image.licenses=Apache-2.0 \
	--label org.opencontainers.image.version=$(VERSION) \
	--label org.opencontainers.image.revision=$(shell git rev-parse HEAD 2>/dev/null || echo unknown) \
	$(if $(SOURCE),--label org.opencontainers.image.source=$(SOURCE))
IMAGE_LIMIT := 15000000
# A C compiler for the cryptography. For this machine: its own with musl's headers, unpacked and not installed. For
# another one (`make image TARGET=aarch64-unknown-linux-musl`): Debian's cross compiler, and Rust's own linker.
MACHINE := $(firstword $(subst -, ,$(TARGET)))
TARGET_VARIABLE := $(shell echo $(TARGET) | tr a-z- A-Z_)
ifeq ($(MACHINE),$(shell uname -m))
IMAGE_DIR := target/image
COMPILER   = $$($(TESTBED) path musl-gcc)
else
IMAGE_DIR := target/image/$(MACHINE)
COMPILER   = $$(command -v $(MACHINE)-linux-gnu-gcc || echo "$(MACHINE)-linux-gnu-gcc is missing: install Debian's gcc-$(subst _,-,$(MACHINE))-linux-gnu" >&2)
export CARGO_TARGET_$(TARGET_VARIABLE)_LINKER := rust-lld
endif

# Builds the static binaries with the profile $(1) and the variables $(2).
define build-binaries
	@rustup target list --installed | grep -qx $(TARGET) || rustup target add $(TARGET)
	@echo "Building the static binaries; the first time this takes some minutes."
	@compiler=$(COMPILER) && [ -n "$$compiler" ] && CC_$(subst -,_,$(TARGET))="$$compiler" $(2) \
		$(CARGO) build --locked --quiet --profile $(1) --target $(TARGET) --package memcached-operator --package memcached-agent --bin memcached-operator --bin memcached-agent
endef

# The same with the variables $(4), and an image of them below $(3); cargo calls the profile's directory $(2).
define build-image
	$(call build-binaries,$(1),$(4))
	@$(TESTBED) image target/$(TARGET)/$(2)/memcached-operator target/$(TARGET)/$(2)/memcached-agent --name $(BUILT) \
		--architecture $(MACHINE) $(LABELS) --output $(3)/memcached-operator.tar
endef

## Try it

demo: testbed image ## The operator at work on a real cluster of its own (root); CLUSTER=current uses your KUBECONFIG
	@demo/run $(TESTBED) '$(CLUSTER)' '$(IMAGE)'

demo-down: testbed ## Take the demo away without a trace: its cluster, or with CLUSTER=current what it brought to yours
	@demo/down $(TESTBED) '$(CLUSTER)'

## Build

image: testbed ## The operator's image, from static binaries, the agent's beside its own: target/image/memcached-operator.tar
	$(call build-image,release,release,$(IMAGE_DIR))
	@$(XTASK) sbom memcached-operator memcached-agent --target $(TARGET) --output $(IMAGE_DIR)/memcached-operator.cdx.json
	@size=$$(gzip --stdout $(IMAGE_DIR)/memcached-operator.tar | wc --bytes); \
		echo "$(IMAGE_DIR)/memcached-operator.tar, $$((size / 1000)) kB compressed"; \
		[ $$size -lt $(IMAGE_LIMIT) ] || { echo "the image is larger than $(IMAGE_LIMIT) bytes compressed"; exit 1; }

# What tests run: the same binaries, compiled in a third of the time, with the macros that the tests have compiled
# already. Nothing that is published is made of it.
test-image: testbed
	$(call build-image,dev,debug,target/test-image,CARGO_TARGET_$(TARGET_VARIABLE)_RUSTFLAGS="-C strip=symbols")

release: ## What is published, for IMAGE=<registry>/<name>:<tag>: target/release-files with install.yaml, the chart, the bundle, checksums
	@[ -n '$(IMAGE)' ] || { echo "say where the image is: make release IMAGE=<registry>/memcached-operator:<tag>"; exit 1; }
	@packaging/release '$(IMAGE)' target/release-files

generate: testbed ## Write the generated files: CRDs, RBAC, chart, install.yaml, bundle, API reference
	@$(XTASK)

## Test it

test: root checks test-unit ## Everything below; installs what it needs (root)
	@$(TESTBED) install --for control-plane
	@nice -n 19 $(MAKE) --no-print-directory test-ahead > target/test-ahead.log 2>&1 & ahead=$$!; \
		trap "kill $$ahead 2>/dev/null" EXIT; \
		$(MAKE) --no-print-directory test-integration && wait $$ahead || { cat target/test-ahead.log; exit 1; }
	@$(MAKE) --no-print-directory test-e2e
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target test-package compat
	@echo "All tests passed."

# What the tests on nodes need, made while integration tests wait for their clusters: with what they leave of the
# processor. The targets that need it find it done.
test-ahead: testbed test-image
	@for set in security package compat; do $(TESTBED) install --for $$set || exit 1; done

checks: testbed ## Formatting, lints, generated files, packages, workflows, documentation, alerts, dependencies, size limits
	$(CARGO) fmt --all --check
	@$(XTASK) --check
	@find bench crates e2e testbed xtask -name '*.rs' | xargs wc -l | awk '$$2 != "total" && $$1 > 400 { print $$2 " has " $$1 " lines, the limit is 400"; long = 1 } END { exit long }'
	@docs/check
	@docs/sketch --check
	$(CARGO) clippy --locked --workspace --all-targets --quiet -- --deny warnings
	@for crate in $$(sed -n '/^.package/,/^$$/s/^name = "\(.*\)"/\1/p' crates/*/Cargo.toml); do \
		$(CARGO) check --locked --quiet --package $$crate || { echo "$$crate does not compile alone: it lacks a dependency or a feature"; exit 1; }; done
	@$(TESTBED) install --for book
	@"$$($(TESTBED) path mdbook)" build docs --dest-dir $(CURDIR)/target/book
	@monitoring/test "$$($(TESTBED) path promtool)"
	@packaging/dependencies "$$($(TESTBED) path cargo-deny)"

advisories: testbed ## Known vulnerabilities in the crates we use: needs the network, so it is not part of the tests
	"$$($(TESTBED) path cargo-deny)" --locked check --deny warnings advisories

test-unit: ## Pure logic: no cluster, no root
	$(CARGO) test --locked --workspace --quiet --lib --test contract --test fuzz --test scripted
	$(CARGO) test --locked --workspace --quiet --doc

fuzz: ## Hostile bytes at the protocol's parser, for minutes; FUZZ_ITERATIONS=... for longer, FUZZ_SEED=... again
	FUZZ_ITERATIONS=$${FUZZ_ITERATIONS:-2000000} $(CARGO) test --locked --workspace --test fuzz

# The version before creations by POST: every later one must be able to go back to it.
PREVIOUS ?= a43276a

campaign: testbed ## Exhaustive runs: a rollback to the version PREVIOUS=<commit> and back over every shape of cache, a hundred restarts
	@$(TESTBED) install --for control-plane
	@$(TESTBED) install --for fleet
	@mkdir -p target/previous/source && git archive $(PREVIOUS) | tar --extract --directory target/previous/source
	$(CARGO) build --locked --quiet --manifest-path target/previous/source/Cargo.toml --target-dir target/previous/target --package memcached-operator --bin memcached-operator
	PREVIOUS_OPERATOR=$(CURDIR)/target/previous/target/debug/memcached-operator \
		$(CARGO) test --locked --workspace --test memcached -- --ignored rollback
	@$(TESTBED) install --for server
	$(CARGO) test --locked --workspace --test supervisor -- --ignored

test-integration: testbed ## Real etcd, API server, controllers and memcached on loopback: no root
	@$(TESTBED) install --for control-plane
	@$(TESTBED) install --for fleet
	@$(TESTBED) install --for server
	@testbed/run-tests 2 $(THREADS) --test admin --test admission --test cli --test control_plane --test exporter --test supervisor --test fleet --test greeting --test install --test lease --test lifecycle --test memcached --test server --test webhook --test wire

test-e2e: root testbed test-image ## Real kubelet and containers in namespaces of their own (root)
	@$(TESTBED) install --for security
	$(CARGO) build --locked --workspace --quiet --bin memcached-operator
	$(CARGO) test --locked --workspace --test cache --test campaign --test node --test security --test warm -- --test-threads $(THREADS)
	$(CARGO) test --locked --workspace --test teardown
	@$(TESTBED) down --name shared

test-package: root testbed test-image ## Chart, kustomize, install.yaml: installed, upgraded and removed on a node of their own (root)
	@$(TESTBED) install --for package
	@testbed/run-tests 1 $(THREADS) --test package
	@for name in package package-2 package-3; do $(TESTBED) down --name $$name; done

compat: root testbed test-image ## The other operator's own test suite, against ours (root)
	@$(TESTBED) install --for compat
	@testbed/run-tests 1 $(THREADS) --test compat
	@$(TESTBED) down --name shared

# First of all, so that nobody waits for a build before being told.
root:
	@[ "$$(id -u)" = 0 ] || { echo "$(MAKECMDGOALS) needs root (namespaces, mounts, a network interface): run it with sudo"; exit 1; }

## Measure it

# Sizes and scenarios, separated by commas; `target/release/bench run --help` tells them. What has a result is skipped.
SIZE     ?= 100,300,1000
SCENARIO ?= create
SUBJECT  ?= all
RUNS     ?=
AGAIN    ?=
BENCH    := target/release/bench

bench: testbed bench-program ## Ours, the other operator and bare requests: SIZE=1000 SCENARIO=create,ready,… SUBJECT=ours RUNS=3 AGAIN=1
	$(call build-binaries,release)
	@$(TESTBED) install --for bench
	@$(BENCH) run --size $(SIZE) --scenario $(SCENARIO) --subject $(SUBJECT) $(if $(RUNS),--runs $(RUNS)) $(if $(AGAIN),--again) \
		--ours target/$(TARGET)/release/memcached-operator
	@$(BENCH) report

bench-report: bench-program ## Ratios of all results so far: a table, target/bench/report.json, docs/src/images/bench.svg
	@$(BENCH) report

bench-admission: testbed ## What admission costs, as ratios within one run
	@$(TESTBED) install --for control-plane
	@$(TESTBED) install --for fleet
	$(call build-binaries,release)
	@OPERATOR_BIN=$(CURDIR)/target/$(TARGET)/release/memcached-operator \
		$(CARGO) test --locked --workspace --quiet --test admission -- --ignored --nocapture latency 2>&1 | grep -E "p50|p99"

# It writes the bare requests itself: unoptimised it would measure itself. What makes a small binary would only take time.
bench-program:
	@CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
		$(CARGO) build --locked --quiet --release --package bench --bin bench

## Use the cluster

install: testbed ## Build everything the clusters need, once (about 12 minutes on two cores)
	@$(TESTBED) install

up: testbed ## Start a cluster that runs containers (root); NAME=... for another name
	@$(TESTBED) up --name $(NAME)

down: testbed ## Take it away again
	@$(TESTBED) down --name $(NAME)

status: testbed ## What is running
	@$(TESTBED) status

# Both programs at once and with the features of the whole workspace: tests then find what they share compiled.
testbed:
	@$(CARGO) build --locked --workspace --quiet --bin testbed --bin xtask

clean: ## Remove build results of this tree; the cache of the clusters stays
	$(CARGO) clean

help: ## This list
	@awk 'BEGIN { FS = ":.*## " } /^## / { printf "\n%s\n", substr($$0, 4) } /^[a-z0-9-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
