# stocklock: `make demo` and `make test` need nothing but Go; what else they use, they install or name.
export GO ?= go
# More arguments for `make demo`, `make lab`, `make matrix`, `make soak`, `make bench` and `make docs`, such as ARGS='--seed 7'.
ARGS ?=

.PHONY: help
help: ## print the targets
	@awk -F ':[^#]*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## compile bin/loadtest, and bin/shop with what it does in the lab
	scripts/lab-go.sh build -o bin/ ./cmd/shop ./cmd/loadtest

.PHONY: shop
shop: ## compile bin/production/shop: the shop as it is deployed, without the lab
	$(GO) build -tags nomsgpack -trimpath -ldflags=-s -o bin/production/ ./cmd/shop

.PHONY: demo
demo: ready ## compare five strategies, then run every strategy in its telling scenario; out/report.html
	bin/loadtest demo $(ARGS)

.PHONY: lab
lab: ready ## open the page: predict, run, watch and step through cells on real servers; Ctrl-C ends it
	bin/loadtest serve $(ARGS)

.PHONY: matrix
matrix: ready ## run every strategy under every scenario
	bin/loadtest run all $(ARGS)

.PHONY: soak
soak: ready ## sell for ten minutes while everything goes wrong at once; ARGS='--for 1m --seed 2'
	bin/loadtest soak $(ARGS)

.PHONY: bench
bench: ready ## measure the lock beside its peers, in a few minutes
	scripts/lab-go.sh -C bench build -o ../bin/ .
	bin/bench --loadtest bin/loadtest --save out/bench.txt --baseline bench/baseline.txt $(ARGS)

.PHONY: bench-shops
bench-shops: ## measure what a sale costs, beside a shop of sixty lines; ARGS='--before PROGRAM' beside an earlier shop, too
	scripts/lab-go.sh -C bench build -o ../bin/ ./shops
	bin/shops $(ARGS)

PEERS_PAGE = scripts/lab-go.sh -C bench run ./peerspage --from results/peers --to ../docs/peers.md

.PHONY: peers
peers: ## run the locks of other libraries under every scenario, measure them, and write docs/peers.md; on a machine that nothing else uses
	scripts/measure.sh peers
	$(PEERS_PAGE)

.PHONY: docs
docs: ready ## bring the generated pages up to date with the code; ARGS=reentrant:pause runs the cell of a page again
	scripts/lab-go.sh run ./docs/make $(ARGS)
	$(PEERS_PAGE)

.PHONY: site
site: out/matrix.json ## make a static site of the matrix, the peers and all pages: out/site; runs the matrix where out/matrix.json is missing
	rm -rf out/site
	scripts/lab-go.sh run ./docs/site -report $< -to out/site

# A surprise (exit code 1) is marked in the report.
out/matrix.json: | ready
	bin/loadtest run all --out $@ $(ARGS) || test $$? -eq 1

# The tests also need etcd for the locks of other libraries, a C compiler for the race detector, and
# Chromium for the pages.
.PHONY: test
test: ## run every test once, against real servers; with the race detector where goroutines meet
	@scripts/servers.sh bash redis mysql etcd cc chromium
	@scripts/test.sh

.PHONY: nightly
nightly: ## search for what no test looks for: schedules, mutations, inputs, states; hours
	@scripts/check.sh nightly

.PHONY: quick
quick: ## look for mistakes and run the tests that need no server: under half a minute once it is compiled
	@scripts/tidy.sh
	scripts/lab-go.sh vet ./...
	scripts/lab-go.sh tool -modfile=tools/go.mod staticcheck ./...
	scripts/lab-go.sh test -short ./...

.PHONY: contract
contract: servers ## hold the production shop to its OpenAPI contract with schemathesis; minutes
	@ARGS='$(ARGS)' scripts/contract/run.sh

.PHONY: lock-on
lock-on: servers ## run all tests of the lock on this Redis, Redis 8 and Valkey 9, or on one: make lock-on SERVER=/opt/valkey/bin/valkey-server
	scripts/lock-on.sh $(SERVER)

.PHONY: copy-lock
copy-lock: ## copy the lock into another module: make copy-lock TO=../shop/lock IMPORT=example.com/shop/lock
	internal/redislock/copy.sh $(TO) $(IMPORT)

.PHONY: copy-shop
copy-shop: ## copy the shop, without the lab, into a module of its own: make copy-shop TO=../shop MODULE=example.com/shop
	internal/shop/copy.sh $(TO) $(MODULE)

# What is different without the tag lab.
PRODUCTION = ./internal/shop/program ./cmd/shop

.PHONY: lint
lint: ## look for mistakes and known vulnerabilities: gofmt, go mod tidy, go vet, staticcheck, govulncheck, the manifests
	@scripts/tidy.sh . bench tools
	scripts/lab-go.sh vet -tags nomsgpack $(PRODUCTION)
	LAB_TAGS=mutations,explore,migration,contract scripts/lab-go.sh vet ./...
	EXERCISE_VET=yes scripts/lab-go.sh test -count=1 -run TestEveryExerciseHasAnswers ./internal/lab/exercise
	scripts/lab-go.sh -C bench vet -tags nomsgpack ./...
	scripts/lab-go.sh -C tools vet ./...
	scripts/lab-go.sh -C tools test ./... # of the manifests, by the API's own types, which take long to compile
	scripts/lab-go.sh tool -modfile=tools/go.mod staticcheck -tags nomsgpack $(PRODUCTION)
	scripts/lab-go.sh tool -modfile=tools/go.mod staticcheck ./...
	scripts/lab-go.sh -C bench tool -modfile=../tools/go.mod staticcheck -tags nomsgpack ./...
	@scripts/vulncheck.sh

.PHONY: clean
clean: ## remove what was built and measured here
	rm -rf bin out

# What has to be on the machine: a Redis and a MySQL or MariaDB server.
.PHONY: servers
servers:
	@scripts/servers.sh redis mysql

# The compiler runs while servers are downloaded and installed.
.PHONY: ready
ready: ## compile, and install the servers that are missing
	@$(MAKE) --no-print-directory -j2 build servers
