# What can be done with this repository; "make" alone lists it.

GOFUMPT      := go run mvdan.cc/gofumpt@v0.12.0
GOLANGCI     := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
VERSION      := $(shell git describe --tags --always --dirty 2>/dev/null || echo unversioned)
STAMP        := -s -w -X envapi/internal/app.version=$(VERSION)
INIT         := sandbox/initbin/envapi-init

.DEFAULT_GOAL := help
.PHONY: help install build run test check generate bench fuzz soak smoke crash clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: ## fetch the modules and build both programs into bin/
	go mod download
	@$(MAKE) --no-print-directory build

# The box init goes into the programs as bytes, so it is built first. All are
# built without cgo, and are static files: the init must be, and "doctor --attack"
# runs envapi-http itself in a box.
build: ## build bin/envapi-http and bin/envapi-mcp
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $(INIT) ./cmd/envapi-init
	CGO_ENABLED=0 go build -trimpath -ldflags '$(STAMP)' -o bin/ ./cmd/envapi-http ./cmd/envapi-mcp

run: build ## serve on :8008 by .env, or with a stand-in keyring where there is none
	@if [ -f .env ]; then exec bin/envapi-http; else exec bin/envapi-http --dev; fi

test: ## everything that must hold: checks, tests as root and as a user, short fuzzing
	scripts/test

check: build ## formatting, vet, lint, generated documents, OpenAPI, go.mod
	@unformatted=$$($(GOFUMPT) -l .); [ -z "$$unformatted" ] || { echo "gofumpt would change:"; echo "$$unformatted"; exit 1; }
	go vet ./...
	go vet -tags faults ./internal/faults
	go mod tidy -diff
	go test -count=1 -run Generated ./internal/docs ./internal/config
	scripts/lint-openapi
	$(GOLANGCI) run --allow-parallel-runners ./...

generate: ## write the generated documents anew
	go run ./scripts/docs

bench: build ## measure against bwrap and a bare fork, in ratios of one run
	go run ./bench -bin bin

fuzz: build ## run each fuzz target on 20 times the inputs of "make test", and the random tests with a new seed (FUZZ=100)
	scripts/fuzz $${FUZZ:-20}

soak: build ## many clients and hostile ones for ten minutes, then look for leaks (SOAK="-minutes 60 -clients 48", or "-environments 1000")
	go run ./soak -bin bin $(SOAK)

smoke: ## drive every operation of a running server (SMOKE="-url … -token-file …")
	go run ./scripts/smoke $(SMOKE)

crash: build ## kill a service 300 times under load and look for what is lost (ENVAPI_CRASH_ROUNDS=…)
	ENVAPI_CRASH_ROUNDS=$${ENVAPI_CRASH_ROUNDS:-300} go test -race -count=1 -timeout 3h -v -run 'TestNothingAnsweredIsLost' ./e2e

clean: ## remove what was built
	rm -rf bin $(INIT) e2e/node/node_modules
