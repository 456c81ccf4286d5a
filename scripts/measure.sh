#!/bin/sh
# Measures what the tables of docs/measurements.md and docs/operate.md are made of, and writes a file for each:
#
#   scripts/measure.sh                 all, in half an hour on a machine that nothing else uses
#   scripts/measure.sh lock soaks      these alone
#   SHORT=yes scripts/measure.sh       a trial of a few minutes, whose numbers mean nothing
#   make docs                          makes the tables
#
# A file of bench/results has when, where and by which commands it was made, and then the results in the format of
# Go's benchmarks: benchstat compares two of them. A measurement that fails leaves the earlier file.
# TESTSERVER_MYSQL=PROGRAM measures on another server. Exit code 0, or that of the first command that failed.
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- lock hot items crowds topologies baskets shops soaks

repeat=3 seconds=0.5 each=800ms longer=2s crowd=5s soak='--for 1m' sales=100000
[ -z "${SHORT:-}" ] || repeat=1 seconds=0.1 each=200ms longer=200ms crowd=200ms soak='--for 6s' sales=4000

make ready
scripts/lab-go.sh -C bench build -o ../bin/ . ./shops

PATH=$PATH:/usr/sbin:/usr/local/sbin:/usr/libexec:/opt/homebrew/bin:/usr/local/bin # as in scripts/servers.sh
version() { "$@" --version | sed -nE 's/.*(Ver|v=)\s*([0-9.]+)(-(MariaDB))?.*/\4 \2/p' | sed 's/^ //'; }
mysql=${TESTSERVER_MYSQL:-$(command -v mariadbd || command -v mysqld)}
redis=$(command -v redis-server || command -v valkey-server)
machine="$(go env GOOS)/$(go env GOARCH), $(getconf _NPROCESSORS_ONLN) cores, $(go env GOVERSION), $(version "$mysql"), Redis $(version "$redis")"
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
		measure bin/loadtest soak --sales $sales
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
	} >"bench/results/$name.txt"
done
