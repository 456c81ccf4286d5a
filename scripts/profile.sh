#!/bin/sh
# Shows what limits a strategy on one hot item: the share of the processors that each program takes,
# and where one shop spends its own. Needs Linux.
#
#   scripts/profile.sh                                      batched --workers 200
#   scripts/profile.sh conditional --workers 48 --mysql-set binlog    a strategy, and flags of `loadtest run`
#
# Exit code 0, or that of the run.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- batched --workers 200
make ready
strategy=$1
shift
seconds=5
go tool pprof -h >/dev/null 2>&1 || true # Go compiles it at its first use

work=$(mktemp -d)
run=
trap '[ -z "$run" ] || kill -INT "$run" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

bin/loadtest run "$strategy" --stock 60000 --requests 60001 --work 0s "$@" >"$work/table" 2>"$work/progress" &
run=$!

# The shops and the servers are children of the run. An internal address is in each shop's environment.
children() { pgrep -P "$run" || true; }
internal() { tr '\0' '\n' <"/proc/$1/environ" | sed -n 's/^SHOP_INTERNAL_ADDR=//p'; }
shop=
until [ -n "$shop" ]; do
	kill -0 "$run" 2>/dev/null || { cat "$work/progress" "$work/table" >&2; wait "$run"; exit 1; }
	for child in $(children); do
		address=$(internal "$child" 2>/dev/null) && [ -n "$address" ] && shop=$address
	done
	sleep 0.2
done
sleep 3 # its connections are open then, and the sales have begun

ticks() { # of the processor that each program has used, a line each
	for p in "$run" $(children); do
		awk -v name="$(cat "/proc/$p/comm")" '{ sub(/.*\) /, ""); print name, $12 + $13 }' "/proc/$p/stat" || true
	done
}
now() { cut -d' ' -f1 /proc/uptime; }

ticks >"$work/before"
begun=$(now)
go tool pprof -proto -seconds "$seconds" -output "$work/profile" "http://$shop/debug/pprof/profile" >/dev/null 2>&1
ticks >"$work/after"
took=$(awk -v from="$begun" -v to="$(now)" 'BEGIN { print to - from }')

echo "The share of the processors that each program took, of $(nproc) in $took s:"
awk -v hz="$(getconf CLK_TCK)" -v cores="$(nproc)" -v seconds="$took" '
	FNR == NR { used[$1] -= $2; next }
	{ used[$1] += $2 }
	END { for (name in used) { part = 100 * used[name] / hz / cores / seconds; if (part >= 0.5) printf "  %-12s %3.0f %%\n", name, part; sum += part }
		printf "  %-12s %3.0f %%\n", "nobody", 100 - sum }' "$work/before" "$work/after" | sort -k2 -rn
echo "Of the time of one shop, with what was called from there:"
go tool pprof -top -cum -nodecount=100000 "$work/profile" 2>/dev/null >"$work/top"
part() { # FUNCTION WHAT
	awk -v function_="$1" -v what="$2" '$6 == function_ { printf "  %-60s %s\n", what, $5; found = 1 } END { if (!found) printf "  %-60s not seen\n", what }' "$work/top"
}
part 'net/http.(*conn).serve' "HTTP: a request, read and answered, with its sale"
part 'stocklock/internal/shop.(*Shop).answerOrder' "the handler of an order, a part of it"
part 'stocklock/internal/stock.(*Store).transaction' "SQL, from BEGIN to COMMIT"
part 'runtime.schedule' "Go: choosing what runs next"
part 'runtime.gcBgMarkWorker' "Go: collecting garbage"
part 'internal/runtime/syscall/linux.Syscall6' "the kernel, in system calls"
wait "$run" && code=0 || code=$?
run=
cat "$work/table"
exit $code
