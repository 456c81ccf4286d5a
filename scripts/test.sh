#!/usr/bin/env bash
# Runs every test of the repository once: make test.
#
# The packages in which goroutines of ours meet run with the race detector, the others without. No
# test is run again. A test that could not measure because the machine stood still is named; more
# than three of them fail the run.
set -uo pipefail
cd "$(dirname "$0")/.."

# The longest comes first.
meet='./internal/lab/step ./internal/shop ./internal/shop/labmode ./internal/stock ./internal/redislock/... ./internal/strategy/...
./internal/lab/load ./internal/lab/trial ./internal/lab/wire ./internal/stalltest'
most=3 # tests that could not measure
packages=$(getconf _NPROCESSORS_ONLN) # at once, of each half: tests wait for servers half of the time

STALLED_TESTS=$(mktemp) FAILED=$(mktemp) OTHERS=$(mktemp) half=''
export STALLED_TESTS
trap '[ -z "$half" ] || kill -- "-$half" 2>/dev/null; rm -f "$STALLED_TESTS" "$FAILED" "$OTHERS"' EXIT

run() { # run WHAT MODULE ARGUMENT...: without vet, which make lint runs
	local what=$1 in=$2
	shift 2
	printf -- '-- %s\n' "$what"
	scripts/lab-go.sh -C "$in" test -p "$packages" -vet=off -count=1 "$@" | grep -v '\[no test files\]$'
	[ "${PIPESTATUS[0]}" = 0 ] || echo "$what" >>"$FAILED"
}

tested() { scripts/lab-go.sh list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' "$@"; }
# shellcheck disable=SC2086 # a list of packages
met=$(tested $meet) && others=$(tested ./... | grep -vxF -e stocklock -e "$met") || exit 1
# Much to compute, or many runs of what other tests of the package run under the race detector.
searches='Test(Model|BothSteppers|WhatIsFound|KeptSchedules|ServicesThatDecideElsewhere|ThreeCustomers|FaultsOfLocks|OddServices|WhatDoesNotAddUp'
searches+='|RedisLosesTheLock|WhoComesAfterAServerBroke|ALeaseThat|AnOrderThatAnotherProcessWrites|TwoLeases)'

# What both halves need is compiled before, and so once.
scripts/lab-go.sh build -o bin/ ./cmd/shop ./cmd/loadtest || exit 1

# The halves run beside each other: one compiles while the tests of the other wait. The second one is
# printed when the first has ended. It is a process group, so that all of it ends with this script.
set -m
{
	# shellcheck disable=SC2086
	run 'without the race detector' . -shuffle=on -parallel 4 -timeout 20m $others
} >"$OTHERS" 2>&1 &
half=$!
set +m
# shellcheck disable=SC2086
run 'with the race detector' . -race -gcflags='all=-l -dwarf=false' -shuffle=on -parallel 4 -timeout 20m -skip "$searches" $met
LAB_TAGS=searches run 'the searches' . -parallel 4 -timeout 20m -run "$searches" ./internal/redislock ./internal/lab/step
LOADTEST_SHOP_BINARY=$PWD/bin/shop run 'bench' bench -tags nomsgpack -timeout 10m ./...
run 'the production shop' . -tags nomsgpack ./internal/shop/program
run 'the rules of the imports' . . # of what is compiled by now
wait "$half"
half=''
cat "$OTHERS"

skipped() { [ -e "$1" ] || printf -- '-- skipped: %s\n' "$2"; } # skipped PATH TEST: a test that lacks the path
skipped scripts/axe/node_modules 'TestAxeFindsNothing, without axe-core: scripts/axe/install.sh fetches it'
skipped "$(echo examples/python/.venv/lib/python3*/site-packages/pymysql)" 'TestTryExamples/python: examples/install.sh fetches its packages'
skipped examples/node/node_modules 'TestTryExamples/node and TestTheNodeShopOutlivesAClient: examples/install.sh fetches its packages'
skipped examples/java/target/shop.jar 'TestTryExamples/java: examples/install.sh java builds it'
skipped "$(PATH=$PATH:/usr/sbin:/usr/libexec command -v mariadbd || echo mariadbd)" 'Galera, which MySQL has not: MariaDB has it'
code=0
if [ -s "$FAILED" ]; then
	sed 's/^/-- failed: /' "$FAILED"
	code=1
fi
stalled=$(grep -c . "$STALLED_TESTS")
if [ "$stalled" -gt 0 ]; then
	printf -- '-- could not measure: %d\n' "$stalled"
	cat "$STALLED_TESTS"
	if [ "$stalled" -gt $most ]; then
		printf -- '-- failed: more than %d tests could not measure\n' $most
		code=1
	fi
fi
exit $code
