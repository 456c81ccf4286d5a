#!/bin/sh
# Measures what the tables of docs/measurements.md, docs/operate.md and docs/peers.md are made of, and writes a file
# for each:
#
#   scripts/measure.sh                 all but peers and migration, in half an hour on a machine that nothing else uses
#   scripts/measure.sh lock soaks      these alone
#   scripts/measure.sh peers           the locks of other libraries; also keeps cells in bench/results/peers
#   scripts/measure.sh migration       three and six million orders, a quarter of an hour
#   SHORT=yes scripts/measure.sh       a trial of a few minutes, whose numbers mean nothing: it writes to out/results
#   make docs                          makes the tables
#
# A file of bench/results has when, where and by which commands it was made, and then the results in the format of
# Go's benchmarks: benchstat compares two of them. A measurement that fails leaves the earlier file.
# TESTSERVER_MYSQL=PROGRAM measures on another server. Exit code 0, or that of the first command that failed.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- lock hot items crowds topologies baskets shops soaks

repeat=3 seconds=0.5 each=800ms longer=2s crowd=5s soak='--for 1m' kills='--sales 100000' scenarios=all runs=3 millions='3 6'
results=bench/results
[ -z "${SHORT:-}" ] || results=out/results repeat=1 seconds=0.1 each=200ms longer=200ms crowd=200ms soak='--for 6s' kills='--sales 4000 --kill-every 300ms' scenarios=crash,pause runs=1 millions=1

mkdir -p $results/peers
make ready
scripts/lab-go.sh -C bench build -o ../bin/ . ./shops

PATH=$PATH:/usr/sbin:/usr/local/sbin:/usr/libexec:/opt/homebrew/bin:/usr/local/bin # as in scripts/servers.sh
version() { "$@" --version | sed -nE 's/.*(Ver|v=) *([0-9.]+)(-(MariaDB))?.*/\4 \2/p' | sed 's/^ //'; }
mysql=${TESTSERVER_MYSQL:-$(command -v mariadbd || command -v mysqld)}
redis=$(command -v redis-server || command -v valkey-server)
machine="$("${GO:-go}" env GOOS)/$("${GO:-go}" env GOARCH), $(getconf _NPROCESSORS_ONLN) cores, $("${GO:-go}" env GOVERSION), $(version "$mysql"), Redis $(version "$redis")"
commit=$(git describe --always --dirty) # before the first file is changed
load() { uptime | sed 's/.*averages*: *\([0-9.]*\).*/\1/'; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Runs a command with --save, and adds its results to those of the measurement.
measure() {
	echo "command: $*" >>"$work/head"
	"$@" --save "$work/part"
	cat "$work/part" >>"$work/results"
}

# Runs a command of the load test. A surprise (exit code 1) is marked in its result.
surprised() { "$@" || [ $? -eq 1 ]; }

# Runs the locks of other libraries. Few customers: the longer a sale has asked etcd for its lock, the likelier is its
# client to notice a partition. Little stock: under failover, rueidislock-two-of-three takes ten seconds for each
# sale, and a cell has ninety. Without etcd its strategies are skipped, with the reason.
# shellcheck disable=SC2086 # words and flags
peers() {
	scripts/servers.sh etcd || echo "etcd's strategies will be skipped"
	scripts/lab-go.sh -C bench build -o ../bin/ ./peershop ./peerspage
	names=$(bin/peerspage --strategies)
	cell="bin/loadtest run --shop-binary bin/peershop --lease 1s --wait 300ms --workers 6 --stock 16"
	surprised $cell "$names:$scenarios" --out out/peers.json
	surprised $cell $(bin/peerspage --failing --cells out/peers.json) --runs $runs --seed 2 --out out/peers-again.json
	bin/loadtest run --shop-binary bin/peershop --work 0s "$names" --out out/peers-sales.json
	surprised bin/loadtest explore --shop-binary bin/peershop redsync redsync-five bsm-redislock rueidislock rueidislock-two-of-three \
		--events forget --lease 600ms --out out/peers-forget.json
	surprised bin/loadtest explore --shop-binary bin/peershop rueidislock etcd etcd-fenced --events pause --out out/peers-pause.json
	bin/peerspage --cells out/peers.json --again out/peers-again.json --sales out/peers-sales.json \
		--explored out/peers-forget.json --explored out/peers-pause.json --keep $results/peers
}

for name; do
	: >"$work/head"
	: >"$work/results"
	began=$(load)
	case $name in
	lock) measure bin/bench --loadtest bin/loadtest --repeat $repeat --seconds $seconds ;;
	hot | items | topologies | baskets) measure bin/bench scale $name --repeat $repeat --each $each ;;
	crowds) measure bin/bench scale crowds --repeat $repeat --each $crowd ;;
	shops) measure bin/shops --cases one-item,64-items,sold-out,crossed --repeat $repeat --for $longer ;;
	soaks) # shellcheck disable=SC2086 # flags
		measure bin/loadtest soak --seed 1 $soak
		measure bin/loadtest soak --seed 2 $soak
		measure bin/loadtest soak $kills
		;;
	peers)
		peers
		measure bin/bench --locks mutex,stocklock,rueidislock,rueidislock-two-of-three,bsm-redislock,redsync,redsync-five,etcd \
			--shapes 1x32,4x8,8x1/1ms --repeat $repeat --seconds $seconds
		;;
	migration)
		for n in $millions; do
			echo "command: MILLIONS=$n scripts/check.sh migration" >>"$work/head"
			MILLIONS=$n SAVE=$work/part scripts/check.sh migration
			cat "$work/part" >>"$work/results"
		done
		;;
	*)
		echo "measure.sh: no measurement is called $name" >&2
		exit 2
		;;
	esac
	{
		echo "date: $(date -u +%F)"
		echo "commit: $commit"
		echo "machine: $machine"
		echo "load: $began to $(load)"
		cat "$work/head"
		echo
		cat "$work/results"
	} >"$results/$name.txt"
done
