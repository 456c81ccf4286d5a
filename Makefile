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
demo: ready ## compare five strategies, then break each strategy where it shows most; out/report.html
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

# Few customers: the longer a sale has asked etcd for its lock, the likelier is its client to notice a
# partition. Little stock: under failover, rueidislock-two-of-three takes ten seconds for each sale, and a cell
# has ninety. A surprise (exit code 1) is marked on the page, and does not end the run. Without etcd its
# strategies are skipped, with the reason.
PEERS_RUN = bin/loadtest run --shop-binary bin/peershop --lease 1s --wait 300ms --workers 6 --stock 16
SURPRISED = || test $$? -eq 1
PEERS_BENCH = mutex,stocklock,rueidislock,rueidislock-two-of-three,bsm-redislock,redsync,redsync-five,etcd

.PHONY: peers
peers: ready ## run the locks of other libraries under every scenario, measure them, and write docs/peers.md
	@scripts/servers.sh etcd || echo "etcd's strategies will be skipped"
	scripts/lab-go.sh -C bench build -o ../bin/ . ./peershop ./peerspage
	$(PEERS_RUN) $$(bin/peerspage --strategies):all --out out/peers.json $(SURPRISED)
	$(PEERS_RUN) $$(bin/peerspage --failing --cells out/peers.json) --runs 3 --seed 2 --out out/peers-again.json $(SURPRISED)
	bin/loadtest run --shop-binary bin/peershop --work 0s $$(bin/peerspage --strategies) --out out/peers-sales.json
	bin/bench --locks $(PEERS_BENCH) --shapes 1x32,4x8,8x1/1ms --save out/peers-bench.txt
	bin/loadtest explore --shop-binary bin/peershop redsync redsync-five bsm-redislock rueidislock rueidislock-two-of-three --events forget --lease 600ms --out out/peers-forget.json $(SURPRISED)
	bin/loadtest explore --shop-binary bin/peershop rueidislock etcd etcd-fenced --events pause --out out/peers-pause.json $(SURPRISED)
	bin/peerspage --cells out/peers.json --again out/peers-again.json --sales out/peers-sales.json --bench out/peers-bench.txt \
		--explored out/peers-forget.json --explored out/peers-pause.json --to docs/peers.md

.PHONY: docs
docs: ready ## bring the generated pages up to date with the code; ARGS=reentrant:pause runs the cell of a page again
	scripts/lab-go.sh run ./docs/make $(ARGS)

.PHONY: site
site: out/matrix.json ## make a static site of the matrix, the peers and all pages: out/site; runs the matrix where out/matrix.json is missing
	rm -rf out/site
	scripts/lab-go.sh run ./docs/site -report $< -to out/site

# A surprise is marked in the report.
out/matrix.json: | ready
	bin/loadtest run all --out $@ $(ARGS) $(SURPRISED)

# The tests also need etcd for the locks of other libraries, a C compiler for the race detector, and
# Chromium for the pages.
.PHONY: test
test: ## run every test once, against real servers; with the race detector where goroutines meet
	@scripts/servers.sh redis mysql etcd cc chromium
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
lock-on: servers ## run the lock's tests on this Redis, Redis 8 and Valkey 9, or on one: make lock-on SERVER=/opt/valkey/bin/valkey-server
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
ready:
	@$(MAKE) --no-print-directory -j2 build servers
