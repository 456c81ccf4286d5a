#!/usr/bin/env bash
# Runs every test of the repository once: make test.
#
# The packages in which goroutines of ours meet run with the race detector, the others without. No
# test is run again. A test that could not measure because the machine stood still is named; more
# than three of them fail the run.
set -uo pipefail
cd "$(dirname "$0")/.."
GO=${GO:-go}

meet='./internal/redislock/... ./internal/stock ./internal/strategy/... ./internal/shop ./internal/shop/labmode
./internal/lab/load ./internal/lab/trial ./internal/lab/stage ./internal/stalltest'
most=3 # tests that could not measure
packages=$(($(getconf _NPROCESSORS_ONLN) + 1)) # at once: tests wait for servers half of the time

STALLED_TESTS=$(mktemp)
export STALLED_TESTS
trap 'rm -f "$STALLED_TESTS"' EXIT

failed=''
run() { # run WHAT MODULE ARGUMENT...: without vet, which make lint runs, and without what a debugger needs
	local what=$1 in=$2
	shift 2
	printf -- '-- %s\n' "$what"
	"$GO" -C "$in" test -p "$packages" -vet=off -ldflags=-w -count=1 "$@" | grep -v '\[no test files\]$'
	[ "${PIPESTATUS[0]}" = 0 ] || failed="$failed, $what"
}

# shellcheck disable=SC2086 # a list of packages
met=$("$GO" list -tags lab $meet) && others=$("$GO" list -tags lab ./... | grep -vxF "$met") || exit 1
searches='TestModel|TestStoreIsLikeRedis' # one goroutine each, and much to compute
# shellcheck disable=SC2086
{
	# nomsgpack: gin without a codec of 112,000 lines, which nothing here uses.
	run 'with the race detector' . -race -tags lab,nomsgpack -shuffle=on -parallel 4 -timeout 20m -skip "$searches" $met
	run 'without the race detector' . -tags lab -shuffle=on -parallel 4 -timeout 20m $others
}
run 'the searches of the lock' . -run "$searches" ./internal/redislock
run 'the production shop' . ./internal/shop/program
run 'bench' bench -timeout 10m ./...
run 'tools' tools ./...

code=0
if [ -n "$failed" ]; then
	printf -- '-- failed: %s\n' "${failed#, }"
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
