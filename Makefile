# Go, gcc, git, make and a Debian userland are all it takes; what else a target
# needs, Go builds into .cache, and apt-get installs for root.

SHELL     := /bin/bash -o pipefail
LINT      := .cache/bin/golangci-lint
SERVERS   := .cache/testservers
NFPM      := .cache/bin/nfpm
SBOM      := .cache/bin/sbom
GOTESTSUM := .cache/bin/gotestsum
# Nothing is repeated, except in .ci/run: -rerun GOTESTSUM -flaky FILE.
RERUN     ?=
# A package may take longer than go test's ten minutes where the machine is busy. Many tests wait
# for a store or a server, so more packages run at once than there are processors.
# make lint has vet, and nobody debugs these programs: without symbols they link in three fifths of the processor time.
QUICK     := -vet=off -ldflags=-w
GOTEST    := go run ./internal/gotest $(RERUN) $(QUICK) -timeout 60m -p $(shell echo $$(( 2 * $$(nproc) )))
# Says every 10 s what goes on.
ALOUD     := $(CURDIR)/.ci/aloud
# Programs, tests and linters have the options of a release, so each package is compiled once, and never again in another
# clone. Without the tag, gRPC brings templates into the programs, and with them 15 MB of unused methods.
OPTIONS   := -tags=grpcnotrace -trimpath
export GOFLAGS     := $(filter-out $(OPTIONS),$(shell go env GOFLAGS)) $(OPTIONS)
export CGO_ENABLED := 0
# What GET /info/version tells of a build that Go does not record.
ABOUT     := github.com/keyplane/keyplane/agent
STAMP     := -X $(ABOUT).buildBranch=$(shell git rev-parse --abbrev-ref HEAD 2>/dev/null) -X $(ABOUT).buildUser=$(shell id -un) -X $(ABOUT).buildHost=$(shell hostname)
FUZZTIME  ?= 10s
BENCHTIME ?= 1s
# Packages that need no server, no file system and no kernel come first: when
# they fail, the rest says nothing.
PURE      := ./internal/floors ./internal/faults/history ./models/... ./proto/... ./scheduler/... ./kvdbsync ./orchestrator/...

# Tests that draw random lives of the scheduler, and how many.
LIVES     := ./scheduler ./scheduler/internal/graph -run '^(TestLife|TestModel)$$'
DRAWS     := 5000

# How long each random test draws from fresh seeds in make explore, and a regular expression for their names.
EXPLORE   ?= 1m
# With SHARES=2 every second test draws or is fuzzed, the others on the next day, as in .ci/run.
SHARES    ?= 1
TESTS     ?=

# How long the attacks of make siege last; make test has 20 s of them.
SIEGE     ?= 30m

# How long the agent of make soak-agent runs; make test has 20 s of it.
SOAK_AGENT ?= 12h

# How many agents make fleet has; make test has 4.
FLEET     ?= 2000

.PHONY: help run build image packages servers compiled nfpm gotestsum test test-kernel test-vpp test-packages test-packets race race-pure explore restarts soak-agent faults fleet siege plots plots-check fuzz bench lint cover walk slow man dist dist-check generate clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## run the agent with a small example in a scratch network namespace; Ctrl-C ends it
	@.bin/first-light run

build: ## build agent, agentctl, vppsim and first-light into .bin
	@echo "building agent, agentctl, vppsim and first-light into .bin$$([ -e .bin/first-light ] || echo '; the first time takes some minutes')"
	@mkdir -p .bin && $(ALOUD) build .bin/ -ldflags "$(STAMP)" ./cmd/... ./examples/first-light

# What builds the image; podman and docker do as well.
BUILDER   ?= $(shell command -v buildah || command -v podman || command -v docker)
IMAGE     := .bin/image/linux-$(shell go env GOARCH)
image: ## build the image keyplane-lab, which runs the network of make run in one command: packaging/container/README.md
	@[ -n "$(BUILDER)" ] || { echo "make image needs buildah, podman or docker"; exit 1; }
	@mkdir -p $(IMAGE) && $(ALOUD) build $(IMAGE)/ -ldflags "-s -w $(STAMP)" ./cmd/... ./examples/first-light
	$(BUILDER) build --build-arg TARGETARCH=$(shell go env GOARCH) -t keyplane-lab -f packaging/container/Dockerfile.lab .bin/image
	@echo "run it: podman run --rm -it --name lab --network=none --cap-add=NET_ADMIN,NET_RAW,SYS_ADMIN --device=/dev/net/tun keyplane-lab"

# As root, install what is missing of Redis, iptables, Chromium, podman and gRPC for Python. The tests that need it skip without.
packages:
	@lacks=; command -v redis-server >/dev/null || lacks=redis-server; \
		command -v iptables-restore >/dev/null || lacks="$$lacks iptables"; \
		command -v chromium >/dev/null || lacks="$$lacks chromium"; \
		command -v podman >/dev/null || lacks="$$lacks podman runc"; \
		/usr/bin/python3 -c 'import grpc, grpc_tools' 2>/dev/null || lacks="$$lacks python3-grpcio python3-grpc-tools"; \
		[ -z "$$lacks" ] || [ "$$(id -u)" != 0 ] || $(ALOUD) "installing $$lacks (apt-get)" sh -c \
		"apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends -y $$lacks >/dev/null" || true

servers: $(addprefix $(SERVERS)/,etcd etcdctl consul) ## build the etcd and Consul servers that tests use, once, into .cache

$(SERVERS)/etcd:    PACKAGE = go.etcd.io/etcd/server/v3
$(SERVERS)/etcdctl: PACKAGE = go.etcd.io/etcd/etcdctl/v3
$(SERVERS)/consul:  PACKAGE = github.com/hashicorp/consul
$(SERVERS)/etcd $(SERVERS)/etcdctl: internal/testservers/go.sum
$(SERVERS)/consul: internal/testservers/consul/go.sum
# Tests that run meanwhile find the old server until the new one is complete.
$(SERVERS)/%:
	@mkdir -p $(@D) && echo "building $(@F) for the tests; this takes some minutes and happens once"
	@cd $(<D) && $(ALOUD) build $(CURDIR)/$@.new $(PACKAGE) && mv $(CURDIR)/$@.new $(CURDIR)/$@ || echo "$(@F) could not be built; its tests will be skipped"

# What the tests import; go test itself does not tell how much of that is compiled.
compiled:
	@$(ALOUD) build '' $$(go list -deps -test -f '{{if and .GoFiles (not (or .Standard .ForTest (eq .Name "main")))}}{{.ImportPath}}{{end}}' ./...)

test: packages servers compiled ## run all tests; what the machine lacks is skipped loudly, and fails when CI=true
	$(GOTEST) $(PURE) && $(GOTEST) $(LIVES) -rapid.checks=$(DRAWS) && $(GOTEST) ./...

KERNELS   ?= 6.1 6.12
test-kernel: ## run the Linux tests in Debian's kernels KERNELS (6.1 6.12), which qemu boots: VRFs, dummies and tunnels
	@.ci/kernel $(KERNELS)

test-vpp: ## run the VPP tests against a real VPP: VPP=binary (default: vpp in PATH), or VPP_SOCKET=its API socket
	@export VPP="$${VPP:-$$(command -v vpp)}"; if [ -n "$$VPP_SOCKET" ]; then \
		VPP= go test -count=1 -timeout 20m ./internal/vppsim -run '^TestBehaviour$$'; elif [ -n "$$VPP" ]; then \
		log=$$(mktemp); trap "rm -f $$log" EXIT; { \
			go test -count=1 -p 1 -timeout 30m ./internal/vppsim ./descriptors/vpp/... ./internal/packets; \
			go test -count=1 ./agent -run '^TestScripts$$/^(dhcp|afpacket)$$'; } 2>&1 | tee "$$log"; \
		if grep -qE '^FAIL' "$$log"; then echo "this VPP differs in:"; grep -E '^ *--- FAIL|^FAIL.' "$$log"; exit 1; fi; else \
		echo "SKIPPED: there is no vpp in PATH; give VPP=/path/of/vpp, or VPP_SOCKET=/run/vpp/api.sock"; fi

test-packets: ## send packets through a real VPP (VPP=binary, default: vpp in PATH) and check what comes out; a part of test-vpp
	@export VPP="$${VPP:-$$(command -v vpp)}"; if [ -n "$$VPP" ]; then go test -count=1 -timeout 30m ./internal/packets; else \
		echo "SKIPPED: there is no vpp in PATH; give VPP=/path/of/vpp"; fi

# The detector is a library of C.
race race-pure: export CGO_ENABLED := 1

race: packages servers ## run all tests under the race detector
	$(GOTEST) -race ./...

nfpm: $(NFPM) # which builds the packages

gotestsum: $(GOTESTSUM) # which repeats failed tests in .ci/run

test-packages: servers nfpm ## the life of the Debian package and of the RPM on a copy of this machine, and the images; needs root, rpm and buildah
	go test -count=1 -timeout 60m -v ./packaging -run '^(TestLife|TestProgramsRunWithoutAnythingElse)$$' -args -packages.build
	go test -count=1 -timeout 20m -v ./packaging/container -args -packages.build

race-pure: ## the tests that need no server, no file system and no kernel, but goroutines, under the race detector
	racy=$$(.ci/racy $(PURE)) && $(GOTEST) -race $$racy

explore: packages servers ## random tests, all or TESTS (TestLife|TestModel), with fresh seeds for EXPLORE (1m) each; prints the seeds that fail
	@.ci/explore $(EXPLORE) '$(TESTS)' $(SHARES)

faults: packages servers ## everything that may happen to a store, in full size; writes the table in docs/faults.md
	go test -timeout 2h ./internal/faults -run '^TestMatrix$$' -args -faults.full -faults.table=$(CURDIR)/docs/faults.md; \
		status=$$?; sed -n '/^| /,/^<!-- end/{/^|/p}' docs/faults.md; exit $$status

fleet: packages servers ## FLEET (2000) agents of 100 keys on clusters of etcd, Consul and Redis: docs/scale.md
	go test -timeout 4h -v ./internal/fleet -run '^TestScale$$' -args -fleet.agents=$(FLEET) -fleet.keys=100 -fleet.rest=60s -fleet.full

restarts: packages servers ## restart an agent by 50 SIGTERM and 50 SIGKILL, and check that neither VPP nor the kernel notices
	go test -count=1 -timeout 30m -v ./agent -run '^TestRestartChangesNothing$$' -args -agent.restarts=50

siege: packages servers build ## all attacks on running agents at once for SIEGE (30m): docs/siege.md says how to read the result
	go test -timeout 0 -v ./internal/siege -args -siege.for=$(SIEGE) -siege.p99=1s -siege.memory=200

soak-agent: packages servers build ## one agent with 50 k keys under edits, cuts and kills for SOAK_AGENT (12h); writes the samples and the plot in docs/plots
	go test -timeout 0 -v ./internal/siege -run '^TestSoak$$' -args -soak.for=$(SOAK_AGENT) -soak.keys=50000 -soak.csv=$(CURDIR)/docs/plots/soak-agent.csv
	$(MAKE) plots

plots: ## the plots of docs/plots from the tables of the documents, and from the samples of make soak-agent
	go -C tools/plots run . $(CURDIR)

plots-check: ## fail if a plot in docs/plots is not that of its table
	go -C tools/plots test ./...

fuzz: ## every fuzz test for FUZZTIME (10s), two at a time
	@.ci/fuzz $(FUZZTIME) $(SHARES)

bench: packages servers ## every benchmark for BENCHTIME (1s)
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

lint: $(LINT) ## golangci-lint, built once into .cache
	$(LINT) run --allow-serial-runners

$(LINT):      PACKAGE = github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(GOTESTSUM): PACKAGE = gotest.tools/gotestsum
$(LINT) $(GOTESTSUM): tools/go.mod
	@mkdir -p $(@D) && echo "building $(@F), once" && cd tools && $(ALOUD) build ../$@ $(PACKAGE)

# Tests start programs, too, which count for themselves.
cover: packages servers ## how much of each package the tests run; fails below 70 % of a package or 80 % of all
	rm -rf .cache/cover && mkdir -p .cache/cover
	KEYPLANE_COVER=$(CURDIR)/.cache/cover $(GOTEST) -coverpkg=./... -coverprofile=.cache/cover.out ./...
	go tool covdata textfmt -i=.cache/cover -o=.cache/cover.programs && cat .cache/cover.programs >>.cache/cover.out
	go run ./internal/coverage .cache/cover.out

walk: servers ## how many functions and files one event runs, written into docs/walk.md
	go test -count=1 -timeout 20m ./internal/walk -args -walk.table=$(CURDIR)/docs/walk.md

slow: packages servers $(GOTESTSUM) ## the 20 slowest tests, by their times beside each other
	$(GOTESTSUM) --format none --jsonfile .cache/tests.json -- $(QUICK) -count=1 -timeout 60m ./...; \
		$(GOTESTSUM) tool slowest --num 20 --jsonfile .cache/tests.json

man: ## the manual pages of agentctl, in .bin/man
	@mkdir -p .bin/man && go run ./cmd/agentctl man .bin/man

dist: $(NFPM) $(SBOM) ## a release in dist/: static binaries, archives, packages, list of modules, checksums
	packaging/dist dist $(NFPM) $(SBOM) && ls -l dist

dist-check: ## build the binaries twice, without a cache, and compare them
	packaging/reproduce

$(NFPM):      PACKAGE = github.com/goreleaser/nfpm/v2/cmd/nfpm
$(SBOM):      PACKAGE = ./sbom
$(SBOM): tools/sbom/main.go
$(NFPM) $(SBOM): tools/go.mod
	@mkdir -p $(@D) && echo "building $(@F), once" && cd tools && $(ALOUD) build ../$@ -trimpath -buildvcs=false $(PACKAGE)

generate: ## generated code from its sources
	go generate ./...

clean: ## remove what build and run made (.cache, with built tools and servers, stays)
	rm -rf .bin .run dist
