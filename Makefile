# The entry point: `make help` lists what there is.

CARGO   ?= cargo
# Tests mostly wait for a cluster: more of them at once than there are cores.
THREADS ?= 8
NAME    ?= default

TESTBED := target/debug/testbed
export TESTBED_BIN := $(CURDIR)/$(TESTBED)

.DEFAULT_GOAL := help
.PHONY: help generate image release demo demo-down test checks test-unit fuzz test-integration test-e2e test-package compat bench install up down status testbed clean

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
# `make image TARGET=aarch64-unknown-linux-musl`: a C compiler of Debian's for the cryptography, Rust's own linker.
MACHINE := $(firstword $(subst -, ,$(TARGET)))
ifeq ($(MACHINE),$(shell uname -m))
IMAGE_DIR := target/image
COMPILER  := musl-gcc
COMPILER_PACKAGE := musl-tools
else
IMAGE_DIR := target/image/$(MACHINE)
COMPILER  := $(MACHINE)-linux-gnu-gcc
COMPILER_PACKAGE := gcc-$(subst _,-,$(MACHINE))-linux-gnu
export CC_$(subst -,_,$(TARGET)) := $(COMPILER)
export CARGO_TARGET_$(shell echo $(TARGET) | tr a-z- A-Z_)_LINKER := rust-lld
endif

## Try it

demo: testbed image ## The operator at work on a real cluster of its own (root); CLUSTER=current uses your KUBECONFIG
	@demo/run $(TESTBED) '$(CLUSTER)' '$(IMAGE)'

demo-down: testbed ## Take the demo away without a trace: its cluster, or with CLUSTER=current what it brought to yours
	@demo/down $(TESTBED) '$(CLUSTER)'

## Build

image: testbed ## The operator's image, from static binaries, the agent's beside its own: target/image/memcached-operator.tar
	@rustup target list --installed | grep -qx $(TARGET) || rustup target add $(TARGET)
	@command -v $(COMPILER) >/dev/null || { echo "Installing $(COMPILER_PACKAGE) from Debian: a C compiler for static binaries."; apt-get update -qq && apt-get install -y -qq --no-install-recommends $(COMPILER_PACKAGE) >/dev/null; }
	@echo "Building the static binaries; the first time this takes some minutes."
	@$(CARGO) build --quiet --release --target $(TARGET) --package memcached-operator --package memcached-agent --bin memcached-operator --bin memcached-agent
	@$(TESTBED) image target/$(TARGET)/release/memcached-operator target/$(TARGET)/release/memcached-agent --name $(BUILT) \
		--architecture $(MACHINE) $(LABELS) --output $(IMAGE_DIR)/memcached-operator.tar
	@$(CARGO) run --quiet --package xtask -- sbom memcached-operator memcached-agent --target $(TARGET) --output $(IMAGE_DIR)/memcached-operator.cdx.json
	@size=$$(gzip --stdout $(IMAGE_DIR)/memcached-operator.tar | wc --bytes); \
		echo "$(IMAGE_DIR)/memcached-operator.tar, $$((size / 1000)) kB compressed"; \
		[ $$size -lt $(IMAGE_LIMIT) ] || { echo "the image is larger than $(IMAGE_LIMIT) bytes compressed"; exit 1; }

release: ## What is published, for IMAGE=<registry>/<name>:<tag>: target/release-files with install.yaml, the chart, the bundle, checksums
	@[ -n '$(IMAGE)' ] || { echo "say where the image is: make release IMAGE=<registry>/memcached-operator:<tag>"; exit 1; }
	@packaging/release '$(IMAGE)' target/release-files

generate: ## Write the generated files: CRDs, RBAC, chart, install.yaml, bundle, API reference
	@$(CARGO) run --quiet --package xtask

## Test it

test: checks test-unit test-integration test-e2e test-package compat ## Everything below; installs what it needs (root)
	@echo "All tests passed."

checks: testbed ## Formatting, lints, generated files, packages, workflows, documentation, alerts, size limits
	$(CARGO) fmt --all --check
	$(CARGO) run --quiet --package xtask -- --check
	$(CARGO) clippy --workspace --all-targets --quiet -- --deny warnings
	@find crates e2e testbed xtask -name '*.rs' | xargs wc -l | awk '$$2 != "total" && $$1 > 400 { print $$2 " has " $$1 " lines, the limit is 400"; long = 1 } END { exit long }'
	@docs/check
	@docs/sketch --check
	@$(TESTBED) install --for book
	@"$$($(TESTBED) path mdbook)" build docs --dest-dir $(CURDIR)/target/book
	@monitoring/test "$$($(TESTBED) path promtool)"

test-unit: ## Pure logic: no cluster, no root
	$(CARGO) test --workspace --quiet --lib --test contract --test fuzz
	$(CARGO) test --workspace --quiet --doc

fuzz: ## Hostile bytes at the protocol's parser, for minutes; FUZZ_ITERATIONS=... for longer, FUZZ_SEED=... again
	FUZZ_ITERATIONS=$${FUZZ_ITERATIONS:-2000000} $(CARGO) test --workspace --test fuzz

test-integration: testbed ## Real etcd, API server, controllers and memcached on loopback: no root
	@$(TESTBED) install --for control-plane
	@$(TESTBED) install --for fleet
	@$(TESTBED) install --for server
	$(CARGO) test --workspace --test admin --test admission --test cli --test control_plane --test exporter --test fleet --test install --test lease --test lifecycle --test memcached --test server --test webhook --test wire -- --test-threads $(THREADS)

test-e2e: testbed image ## Real kubelet and containers in namespaces of their own (root)
	@[ "$$(id -u)" = 0 ] || { echo "test-e2e needs root (namespaces, mounts, a network interface): run it with sudo"; exit 1; }
	@$(TESTBED) install --for security
	$(CARGO) build --workspace --quiet --bin memcached-operator
	$(CARGO) test --workspace --test cache --test campaign --test node --test security -- --test-threads $(THREADS)
	$(CARGO) test --workspace --test teardown
	@$(TESTBED) down --name shared

test-package: testbed image ## Chart, kustomize, install.yaml: installed, upgraded and removed on a node of their own (root)
	@[ "$$(id -u)" = 0 ] || { echo "test-package needs root (namespaces, mounts, a network interface): run it with sudo"; exit 1; }
	@$(TESTBED) install --for package
	$(CARGO) test --workspace --test package -- --test-threads $(THREADS)
	@$(TESTBED) down --name package

compat: testbed image ## The other operator's own test suite, against ours (root)
	@[ "$$(id -u)" = 0 ] || { echo "compat needs root (namespaces, mounts, a network interface): run it with sudo"; exit 1; }
	@$(TESTBED) install --for compat
	$(CARGO) test --workspace --test compat
	@$(TESTBED) down --name shared

bench: testbed ## Figures as ratios within one run: what admission costs
	@$(TESTBED) install --for control-plane
	@$(TESTBED) install --for fleet
	@$(CARGO) test --workspace --quiet --test admission -- --ignored --nocapture latency 2>&1 | grep -E "p50|p99"

## Use the cluster

install: testbed ## Build everything the clusters need, once (about 12 minutes on two cores)
	@$(TESTBED) install

up: testbed ## Start a cluster that runs containers (root); NAME=... for another name
	@$(TESTBED) up --name $(NAME)

down: testbed ## Take it away again
	@$(TESTBED) down --name $(NAME)

status: testbed ## What is running
	@$(TESTBED) status

testbed:
	@$(CARGO) build --workspace --quiet --bin testbed

clean: ## Remove build results of this tree; the cache of the clusters stays
	$(CARGO) clean

help: ## This list
	@awk 'BEGIN { FS = ":.*## " } /^## / { printf "\n%s\n", substr($$0, 4) } /^[a-z0-9-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
