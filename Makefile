# Go, gcc, git, make and a Debian userland are all it takes; what else a target
# needs, Go builds into .cache, and apt-get installs for root.

SHELL     := /bin/bash -o pipefail
LINT      := .cache/bin/golangci-lint
FUZZTIME  ?= 10s
BENCHTIME ?= 1s
# Packages that need no server, no file system and no kernel come first: when
# they fail, the rest says nothing.
PURE      := ./internal/floors ./internal/faults/history ./models/... ./proto/... ./scheduler/... ./kvdbsync ./orchestrator/...

# Tests that draw random lives of the scheduler, and how many in make test and make soak.
LIVES     := ./scheduler ./scheduler/internal/graph -run '^(TestLife|TestModel)$$'
DRAWS     := 5000
SOAK      ?= 1000000

.PHONY: help run build needs test test-vpp race race-pure soak faults fuzz bench lint cover generate clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## the agent with a small example, in a scratch network namespace; Ctrl-C ends it
	@.bin/first-light run

build: ## agent, agentctl and first-light into .bin
	@mkdir -p .bin && go build -o .bin/ ./cmd/... ./examples/...

needs: # where it cannot be had, the tests of it skip
	@command -v redis-server >/dev/null || [ "$$(id -u)" != 0 ] || { apt-get -qq update && \
		DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends -y redis-server >/dev/null; } || true

test: needs ## all tests; what the machine lacks skips loudly, and fails when CI=true
	go test $(PURE) && go test $(LIVES) -rapid.checks=$(DRAWS) && go test ./...

test-vpp: ## what the simulated VPP is held to and what rests on it, on a real one: VPP=binary (as in PATH); or VPP_SOCKET of one that runs
	@export VPP="$${VPP:-$$(command -v vpp)}"; if [ -n "$$VPP_SOCKET" ]; then \
		VPP= go test -count=1 -timeout 20m ./internal/vppsim -run '^TestBehaviour$$'; elif [ -n "$$VPP" ]; then \
		go test -count=1 -p 1 -timeout 30m ./internal/vppsim ./descriptors/vpp/conn ./descriptors/vpp/iface ./descriptors/vpp/l2 ./descriptors/vpp/l3 ./descriptors/vpp && \
		go test -count=1 ./cmd/agent -run '^TestScripts$$/^(dhcp|afpacket)$$'; else \
		echo "SKIPPED: there is no vpp in PATH; give VPP=/path/of/vpp, or VPP_SOCKET=/run/vpp/api.sock"; fi

race: needs ## all tests under the race detector
	go test -race ./...

race-pure: ## the tests that need no server, no file system and no kernel, under the race detector
	go test -race $(PURE)

soak: ## SOAK (1000000) random lives of the scheduler
	go test -timeout 0 $(LIVES) -rapid.checks=$(SOAK)

faults: ## everything that may happen to a store, in full size; writes the table in docs/faults.md
	go test -timeout 2h ./internal/faults -run '^TestMatrix$$' -args -faults.full -faults.table=$(CURDIR)/docs/faults.md; \
		status=$$?; sed -n '/^| /,/^<!-- end/{/^|/p}' docs/faults.md; exit $$status

fuzz: ## every fuzz test for FUZZTIME (10s)
	@go test -list '^Fuzz' ./... | awk '/^Fuzz/ {f[n++] = $$1} /^ok/ {for (i = 0; i < n; i++) print $$2, f[i]; n = 0}' | \
		while read -r pkg name; do go test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) "$$pkg" </dev/null || exit 1; done

bench: ## every benchmark for BENCHTIME (1s)
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

lint: $(LINT) ## golangci-lint, built once into .cache
	$(LINT) run --allow-serial-runners

$(LINT): tools/go.mod
	@mkdir -p $(@D) && echo "building golangci-lint, once" && cd tools && go build -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

cover: ## how much of the code the tests run
	go test -coverpkg=./... -coverprofile=.cache/cover.out ./... && go tool cover -func=.cache/cover.out | tail -n 1

generate: ## generated code from its sources
	go generate ./...

clean: ## remove what build and run made (.cache, with built tools and servers, stays)
	rm -rf .bin .run
