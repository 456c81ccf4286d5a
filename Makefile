# stocklock: `make demo` and `make test` need nothing but Go; what else they use, they install or name.
GO ?= go
# More arguments for `make demo`, `make matrix`, `make soak`, `make crashes` and `make bench`, such as ARGS='--seed 7'.
ARGS ?=

.PHONY: help
help: ## print the targets
	@awk -F ':[^#]*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## compile bin/loadtest, and bin/shop with what it does in the lab
	$(GO) build -tags lab -o bin/ ./cmd/shop ./cmd/loadtest

.PHONY: shop
shop: ## compile bin/production/shop: the shop as it is deployed, without the lab
	$(GO) build -trimpath -ldflags=-s -o bin/production/ ./cmd/shop

.PHONY: demo
demo: build servers ## compare five strategies, then break each strategy where it shows most; out/report.html
	bin/loadtest demo $(ARGS)

.PHONY: lab
lab: build servers ## open the page: predict, run, watch and step through cells on real servers; Ctrl-C ends it
	bin/loadtest serve $(ARGS)

.PHONY: matrix
matrix: build servers ## run every strategy under every scenario
	bin/loadtest run --scenarios all --strategies all $(ARGS)

.PHONY: soak
soak: build servers ## sell for ten minutes while everything goes wrong at once; ARGS='--minutes 1 --seed 2'
	bin/loadtest soak $(ARGS)

.PHONY: crashes
crashes: build servers ## sell a million units while a shop is killed every two seconds; ARGS='--sales 100000'
	bin/loadtest crashes $(ARGS)

.PHONY: bench
bench: build servers ## measure the lock beside its peers, in a few minutes
	$(GO) -C bench build -o ../bin/ .
	@mkdir -p out
	bin/bench --loadtest bin/loadtest --json out/bench.json $(ARGS)

.PHONY: profile
profile: build servers ## show what limits a strategy on one hot item; ARGS='conditional --workers 48 --binlog'
	scripts/profile.sh $(or $(ARGS),batched --workers 200)

# Few customers: the longer a sale has asked etcd for its lock, the likelier is its client to notice a
# partition. A surprise (exit code 1) is marked on the page, and does not end the run. Without etcd its
# strategies are skipped, with the reason.
PEERS_RUN = bin/loadtest run --shop-binary bin/peershop --lease 1s --wait 300ms --workers 6
SURPRISED = || test $$? -eq 1
PEERS_BENCH = mutex,stocklock,rueidislock,rueidislock-two-of-three,bsm/redislock,redsync,redsync-five,etcd

.PHONY: peers
peers: build servers ## run the locks of other libraries under every scenario, measure them, and write docs/peers.md
	@scripts/servers.sh etcd || echo "etcd's strategies will be skipped"
	$(GO) -C bench build -tags lab -o ../bin/ . ./peershop ./peerspage
	@mkdir -p out
	$(PEERS_RUN) --scenarios all --strategies $$(bin/peerspage --strategies) --json out/peers.json $(SURPRISED)
	$(PEERS_RUN) --cells $$(bin/peerspage --failing --cells out/peers.json) --runs 3 --seed 2 --json out/peers-again.json $(SURPRISED)
	bin/loadtest run --shop-binary bin/peershop --work 0s --strategies $$(bin/peerspage --strategies) --json out/peers-sales.json
	bin/bench --locks $(PEERS_BENCH) --shapes 1x32,4x8,8x1/1ms --json out/peers-bench.json
	bin/loadtest explore --shop-binary bin/peershop redsync redsync-five bsm-redislock rueidislock rueidislock-two-of-three --events forget --lease 600ms --json > out/peers-forget.json $(SURPRISED)
	bin/loadtest explore --shop-binary bin/peershop rueidislock etcd etcd-fenced --events pause --json > out/peers-pause.json $(SURPRISED)
	bin/peerspage --cells out/peers.json --again out/peers-again.json --sales out/peers-sales.json --bench out/peers-bench.json \
		--explored out/peers-forget.json --explored out/peers-pause.json --to docs/peers.md

.PHONY: explore
explore: build servers ## run every schedule of two and three sales, show that pruning loses nothing and that defects are found; an hour
	bin/loadtest explore all --events all $(ARGS)
	bin/loadtest explore set-ex-nx owner-get-del owner-checked conditional --events wait --customers 3 $(ARGS)
	$(GO) test -tags lab,explore -run "TestPruningLosesNoOutcomeOnRealServers|TestExplorationFindsDefects" -count=1 -timeout 90m -v ./internal/lab/explore

.PHONY: docs
docs: build servers ## bring the pages of the strategies and scenarios up to date with the code
	$(GO) run ./docs/make

.PHONY: docs-show
docs-show: build servers ## the same, and run each page's command again to show what it prints
	$(GO) run ./docs/make -show

.PHONY: docs-schedules
docs-schedules: build servers ## the same, and play the schedules on the strategies' pages again
	$(GO) run ./docs/make -schedules

# Most tests measure real time, and share the machine: a stall of a second ends a lease. So a test that
# failed is run again by itself, twice at most, and the summary names it. A data race, a panic, a leak
# or more than twenty failures are not tried again.
GOTESTSUM = gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg --rerun-fails=2 --rerun-fails-max-failures=20 --rerun-fails-abort-on-data-race

.PHONY: test
test: servers etcd compiler browser ## run every test, with the race detector, against real servers
	$(GO) tool -modfile=tools/go.mod $(GOTESTSUM) --packages ./... -- -race -tags lab -shuffle=on -count=1 -timeout 30m
	$(GO) test -count=1 -run 'TestModel|TestStoreIsLikeRedis' ./internal/redislock
	$(GO) tool -modfile=tools/go.mod $(GOTESTSUM) --packages ./internal/lab/exercise -- -tags lab -run TestAnswers -count=1 -timeout 30m
	$(GO) test -count=1 -timeout 5m ./internal/shop/program
	$(GO) -C bench tool -modfile=../tools/go.mod $(GOTESTSUM) --packages ./... -- -count=1 -timeout 10m
	$(GO) -C tools test -count=1 ./...

.PHONY: quick
quick: gofmt ## look for mistakes and run the tests that need no server: under half a minute once it is compiled
	$(GO) vet -tags lab ./...
	$(GO) tool -modfile=tools/go.mod staticcheck -tags lab ./...
	$(GO) test -short -tags lab ./...

.PHONY: contract
contract: servers ## hold the production shop to its OpenAPI contract with schemathesis; minutes
	@GO='$(GO)' ARGS='$(ARGS)' scripts/contract/run.sh

.PHONY: model
model: ## search the lock's protocol in the large: minutes, and a few gigabytes
	REDISLOCK_MODEL_LARGE=1 $(GO) test -run 'TestModel' -count=1 -timeout 60m -v ./internal/redislock

.PHONY: lock-on
lock-on: servers ## run the lock's tests on this Redis, Redis 8 and Valkey 9, or on one: make lock-on SERVER=/opt/valkey/bin/valkey-server
	GO='$(GO)' scripts/lock-on.sh $(SERVER)

.PHONY: mysql-on
mysql-on: ## run the shop's tests on another server: make mysql-on SERVER=/opt/mysql/bin/mysqld
	TESTSERVER_MYSQL="$(SERVER)" $(GO) test -tags lab -count=1 -timeout 20m $(ARGS) ./internal/stock/... ./internal/strategy/... ./internal/shop/... ./cmd/shop

.PHONY: lock-choices
lock-choices: servers ## measure the lock with and without each choice that makes it faster: minutes; ARGS='--repeat 5'
	@scripts/lock-choices.sh $(ARGS)

.PHONY: copy-lock
copy-lock: ## copy the lock into another module: make copy-lock TO=../shop/lock IMPORT=example.com/shop/lock
	internal/redislock/copy.sh $(TO) $(IMPORT)

.PHONY: mutations
mutations: servers ## break the shop in four places, one at a time, and see exactly the right verdicts change
	$(GO) test -tags lab,mutations -run TestMutations -count=1 -timeout 20m -v ./cmd/loadtest

.PHONY: migration
migration: servers ## migrate three million orders while three shops are asked to sell; minutes
	$(GO) test -tags lab,migration -run TestAMigrationOfMillionsOfOrders -count=1 -timeout 30m -v ./internal/lab/shoptest

.PHONY: lint
lint: gofmt ## look for mistakes and known vulnerabilities: gofmt, go mod tidy, go vet, staticcheck, govulncheck
	@GO='$(GO)' scripts/tidy.sh . bench tools
	$(GO) vet ./...
	$(GO) vet -tags lab,mutations,explore,migration,contract ./...
	$(GO) -C bench vet ./...
	$(GO) -C tools vet ./...
	$(GO) tool -modfile=tools/go.mod staticcheck ./...
	$(GO) tool -modfile=tools/go.mod staticcheck -tags lab ./...
	$(GO) -C bench tool -modfile=../tools/go.mod staticcheck ./...
	@GO='$(GO)' scripts/vulncheck.sh

.PHONY: alerts
alerts: ## check the alert rules with promtool, and that each fires on what it is for
	@scripts/servers.sh promtool
	promtool check config deploy/prometheus.yml
	promtool test rules deploy/alerts_test.yml

.PHONY: gofmt
gofmt:
	@unformatted=$$(gofmt -l .) && [ -z "$$unformatted" ] || { echo "run gofmt -w on: $$unformatted"; exit 1; }

.PHONY: screenshot
screenshot: build servers browser ## take the pictures of the report and of the page anew: docs/report.png, docs/live
	@mkdir -p out
	bin/loadtest run --cells owner-checked:pause --json out/screenshot.json
	SCREENSHOT_OF=$(CURDIR)/out/screenshot.json SCREENSHOT=$(CURDIR)/docs/report.png $(GO) test -count=1 -run TestScreenshot ./internal/lab/report
	@mkdir -p docs/live
	LIVE_PICTURES=$(CURDIR)/docs/live $(GO) test -tags lab -count=1 -timeout 15m -run 'TestThePage$$' ./internal/lab/live

.PHONY: clean
clean: ## remove what was built and measured here
	rm -rf bin out

# What has to be on the machine: a Redis and a MySQL or MariaDB server.
.PHONY: servers
servers:
	@scripts/servers.sh redis mysql

# What the locks of other libraries are tested on, besides.
.PHONY: etcd
etcd:
	@scripts/servers.sh etcd

# What the HTML report is tested in.
.PHONY: browser
browser:
	@scripts/servers.sh chromium

# The race detector links with C.
.PHONY: compiler
compiler:
	@scripts/servers.sh cc
