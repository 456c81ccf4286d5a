#!/usr/bin/env bash
# Runs one of the checks that take too long for `make test`, or need a program that it does not:
#
#   scripts/check.sh alerts             the alert rules, with promtool: each fires on what it is for
#   scripts/check.sh copies             every test of a copy of the shop, and of one of the lock; minutes
#   scripts/check.sh explore            every schedule of two and three sales: pruning loses nothing, and
#                                       defects are found; hours
#   scripts/check.sh fuzz               each fuzz test for a minute, or for FUZZTIME
#   scripts/check.sh macos              all that is built here compiles for macOS, too; minutes
#   scripts/check.sh migration          three million orders, or MILLIONS, are migrated while three shops sell; minutes
#   scripts/check.sh model              the lock's protocol in the large; minutes, and a few gigabytes
#   scripts/check.sh mutations          the shop, its lock and the lab get known defects, one at a time: each is
#                                       found; goes on where it ended, by out/mutations.json; minutes
#   scripts/check.sh mutations-lock     the code of the lock is broken in one place at a time: a test fails;
#                                       goes on where it ended, by out/mutations-lock.json; hours
#   scripts/check.sh mysql-on SERVER    the shop's tests on another server, such as /opt/mysql/bin/mysqld
#   scripts/check.sh nightly            all of alerts, copies, explore, fuzz, macos, migration, model, mutations,
#                                       mutations-lock, programs and soak; hours
#   scripts/check.sh programs           5,000 random programs: pruning loses no outcome; minutes
#   scripts/check.sh soak               a soak of ten minutes, with another seed each day
#
# Further arguments go to `go test`, those of explore to the first `loadtest explore`.
set -euo pipefail
cd "$(dirname "$0")/.."
GO=${GO:-go}

usage() {
	sed -n 's/^#   //p' scripts/check.sh >&2
	exit 2
}
[ $# -gt 0 ] || usage
what=$1
shift

case $what in
alerts)
	scripts/servers.sh promtool
	promtool check config deploy/prometheus.yml
	promtool test rules deploy/alerts_test.yml
	;;
copies)
	scripts/servers.sh redis mysql
	SHOP_COPY=1 scripts/lab-go.sh test -run "TestTheShopCanBeCopied|TestAWayCanBeCopied" -count=1 -timeout 60m -v "$@" ./internal/lab/shoptest
	shop=$(mktemp -d) # as the README has it
	trap 'rm -rf "$shop"' EXIT
	(cd "$shop" && "$GO" mod init example.com/my/shop && "$GO" mod edit -go=1.26)
	internal/redislock/copy.sh "$shop/lock" example.com/my/shop/lock
	(cd "$shop" && "$GO" mod tidy && time REDISLOCK_PAIRS=30000 "$GO" test -count=1 ./lock/... && "$GO" test -count=1 -tags soak -run TestSoak ./lock)
	;;
explore)
	make ready
	bin/loadtest explore all --events all "$@"
	bin/loadtest explore set-ex-nx owner-get-del owner-checked conditional --events wait --customers 3
	LAB_TAGS=explore scripts/lab-go.sh test -run TestPruningLosesNoOutcomeOnRealServers \
		-count=1 -timeout 90m -v ./internal/lab/survey
	LAB_TAGS=explore scripts/lab-go.sh test -run TestBothSteppersUnderEvents -count=1 -timeout 30m -v ./internal/lab/step
	LAB_TAGS=explore scripts/lab-go.sh test -run "TestStrategiesAsServices|TestAFastTryGoesOn" -count=1 -timeout 90m -v ./cmd/loadtest
	if command -v mvn >/dev/null; then
		examples/install.sh java
		scripts/lab-go.sh test -run TestTryExamples/java -count=1 -v ./cmd/loadtest
	fi
	LAB_TAGS=explore scripts/lab-go.sh test -run "TestAnswersInFull|TestNoSolutionIsOneOfALaterExercise" -count=1 -timeout 120m -v ./internal/lab/exercise
	;;
fuzz)
	scripts/servers.sh redis mysql
	grep -rl '^func Fuzz' --include='*_test.go' cmd internal | sort | while read -r file; do
		for name in $(sed -n 's/^func \(Fuzz[A-Za-z]*\)(.*/\1/p' "$file"); do
			scripts/lab-go.sh test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-1m}" "$@" "./$(dirname "$file")"
		done
	done
	;;
macos)
	export GOOS=darwin CGO_ENABLED=0
	scripts/lab-go.sh vet ./...
	scripts/lab-go.sh -C bench vet ./...
	;;
migration)
	scripts/servers.sh redis mysql
	LAB_TAGS=migration scripts/lab-go.sh test -run TestAMigrationOfMillionsOfOrders -count=1 -timeout 30m -v "$@" ./internal/lab/shoptest
	;;
model)
	REDISLOCK_MODEL_LARGE=1 "$GO" test -run TestModel -count=1 -timeout 60m -v "$@" ./internal/redislock
	;;
mutations)
	scripts/servers.sh redis mysql
	LAB_TAGS=mutations scripts/lab-go.sh test -run TestMutations -count=1 -timeout 90m -v "$@" ./cmd/loadtest
	;;
mutations-lock)
	scripts/servers.sh redis
	GO=$GO "$GO" -C tools run ./mutate "$@" ../out/mutations-lock.json
	;;
mysql-on)
	[ $# -gt 0 ] || usage
	server=$1
	shift
	scripts/servers.sh redis
	TESTSERVER_MYSQL=$server scripts/lab-go.sh test -count=1 -timeout 20m "$@" \
		./internal/stock/... ./internal/strategy/... ./internal/shop/... ./cmd/shop
	;;
programs)
	scripts/servers.sh redis mysql
	EXPLORE_PROGRAMS=${EXPLORE_PROGRAMS:-5000} scripts/lab-go.sh test -run TestPruningLosesNoOutcomeOfPrograms \
		-count=1 -timeout 60m -v "$@" ./internal/lab/explore
	;;
nightly)
	failed=
	for check in alerts copies explore fuzz macos migration model mutations mutations-lock programs soak; do
		echo "== $check"
		scripts/check.sh "$check" || failed="$failed $check"
	done
	if [ -n "$failed" ]; then
		echo "check.sh: failed:$failed" >&2
		exit 1
	fi
	;;
soak)
	make ready
	bin/loadtest soak --seed "$(date +%Y%m%d)" "$@"
	;;
*) usage ;;
esac
