# stocklock: `make demo` and `make test` need nothing but Go; what else they use, they install or name.
GO ?= go
# More arguments for `make demo`, `make matrix`, `make soak` and `make bench`, such as ARGS='--seed 7'.
ARGS ?=

.PHONY: help
help: ## print the targets
	@awk -F ':[^#]*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## compile bin/shop and bin/loadtest
	$(GO) build -o bin/ ./cmd/shop ./cmd/loadtest

.PHONY: demo
demo: build servers ## sell the same stock in eighteen ways, break each of them, and see which oversell
	bin/loadtest run --strategies all --stock 40 $(ARGS)
	bin/loadtest run --cells telling $(ARGS)
	bin/loadtest list properties

.PHONY: matrix
matrix: build servers ## run every strategy under every scenario
	bin/loadtest run --scenarios all --strategies all $(ARGS)

.PHONY: soak
soak: build servers ## sell for ten minutes while everything goes wrong at once; ARGS='--minutes 1 --seed 2'
	bin/loadtest soak $(ARGS)

.PHONY: bench
bench: build servers ## measure the lock beside its peers, in a few minutes
	$(GO) -C bench build -o ../bin/ .
	@mkdir -p out
	bin/bench --loadtest bin/loadtest --json out/bench.json $(ARGS)

.PHONY: docs
docs: build servers ## bring the pages of the strategies and scenarios up to date with the code
	$(GO) run ./docs/make

.PHONY: docs-show
docs-show: build servers ## the same, and run each page's command again to show what it prints
	$(GO) run ./docs/make -show

.PHONY: test
test: servers compiler browser ## run every test, with the race detector, against real servers
	$(GO) test -race -shuffle=on -count=1 -timeout 20m ./...
	$(GO) -C bench test -count=1 -timeout 5m ./...

.PHONY: model
model: ## search the lock's protocol in the large: minutes, and a few gigabytes
	REDISLOCK_MODEL_LARGE=1 $(GO) test -run 'TestModel' -count=1 -timeout 60m -v ./internal/redislock

.PHONY: lock-on
lock-on: ## run the lock's tests on another server: make lock-on SERVER=/opt/valkey/bin/valkey-server
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && ln -s "$(SERVER)" "$$dir/redis-server" && \
		PATH="$$dir:$$PATH" $(GO) test -count=1 -timeout 20m $(ARGS) ./internal/redislock/...

.PHONY: copy-lock
copy-lock: ## copy the lock into another module: make copy-lock TO=../shop/lock IMPORT=example.com/shop/lock
	internal/redislock/copy.sh $(TO) $(IMPORT)

.PHONY: mutations
mutations: servers ## break the shop in four places, one at a time, and see exactly the right verdicts change
	$(GO) test -tags mutations -run TestMutations -count=1 -timeout 20m -v ./cmd/loadtest

.PHONY: lint
lint: ## look for mistakes and known vulnerabilities: go vet, staticcheck, gofmt, govulncheck
	$(GO) vet ./...
	$(GO) -C bench vet ./...
	$(GO) vet -tags mutations ./cmd/loadtest
	$(GO) tool -modfile=tools/go.mod staticcheck ./...
	$(GO) -C bench tool -modfile=../tools/go.mod staticcheck ./...
	@unformatted=$$(gofmt -l .) && [ -z "$$unformatted" ] || { echo "run gofmt -w on: $$unformatted"; exit 1; }
	@GO='$(GO)' scripts/vulncheck.sh

.PHONY: screenshot
screenshot: build servers browser ## take the README's picture of the report anew: docs/report.png
	@mkdir -p out
	bin/loadtest run --cells owner-checked:pause --json out/screenshot.json
	SCREENSHOT_OF=$(CURDIR)/out/screenshot.json SCREENSHOT=$(CURDIR)/docs/report.png $(GO) test -count=1 -run TestScreenshot ./internal/report

.PHONY: clean
clean: ## remove what was built and measured here
	rm -rf bin out

# What has to be on the machine: a Redis and a MySQL or MariaDB server.
.PHONY: servers
servers:
	@scripts/servers.sh redis mysql

# What the HTML report is tested in.
.PHONY: browser
browser:
	@scripts/servers.sh chromium

# The race detector links with C.
.PHONY: compiler
compiler:
	@scripts/servers.sh cc
