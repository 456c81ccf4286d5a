#!/usr/bin/env bash
# Measures the lock with and without each of the choices that make it faster: minutes. The arguments
# go to bench:
#
#   scripts/lock-choices.sh --repeat 5
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/servers.sh redis mysql

# both WHAT FILE OLD NEW COMMAND... runs a command with the lock as it is, and with a place changed.
both() {
	local what=$1 file=$2 old=$3 new=$4
	shift 4
	printf '\n%s: as it is\n' "$what"
	"$@"
	printf '\n%s: %s\n' "$what" "$new"
	scripts/lock-with.sh "$file" "$old" "$new" "$@"
}
bench=("${GO:-go}" -C bench run . "$@")
contended=("${bench[@]}" --locks mutex,stocklock)

alone=("${bench[@]}" --shapes pairs,1x1 --sections empty --locks stocklock,setnx-1ms)
both "first lines of acquire" acquire_free.lua 'there == 0' 'false' "${alone[@]}"
both "first lines of release" release_unwanted.lua '#ARGV == 1' 'false' "${alone[@]}"
both "turns" state.go 'max(m.others/manyOthers, 1)' 'int64(maxPasses)' "${contended[@]}" --shapes 4x8
both "time of a turn" state.go 'maxTurn   = 32, 50' 'maxTurn   = 32, 10' "${contended[@]}" --shapes 4x8 --sections redis,sleep
both "no turns for long holds" state.go 'longHold = 5 *' 'longHold = 5000 *' "${contended[@]}" --shapes 4x8 --sections sleep-10ms
both "shorter turns where many wait" state.go 'manyOthers = 8' 'manyOthers = 8000' "${contended[@]}" --shapes 32x4 --sections sleep --seconds 3
