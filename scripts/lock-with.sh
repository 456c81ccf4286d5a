#!/usr/bin/env bash
# Runs a command with one place of internal/redislock changed, and leaves the file itself alone:
#
#   scripts/lock-with.sh FILE OLD NEW COMMAND...
#
# to see what a choice brings, or which test holds a rule:
#
#   scripts/lock-with.sh state.go 'max(m.others/manyOthers, 1)' 'int64(maxPasses)' \
#     go -C bench run . --shapes 4x8 --locks mutex,stocklock
#   scripts/lock-with.sh renew.lua 'string.sub(holder, 1, #mine) ~= mine' false \
#     go test -failfast ./internal/redislock
set -euo pipefail

if [ $# -lt 4 ]; then
	echo "usage: $0 FILE OLD NEW COMMAND..." >&2
	exit 2
fi
file=$(cd "$(dirname "$0")/../internal/redislock" && pwd)/$1 old=$2 new=$3
shift 3
text=$(<"$file")
case $text in
*"$old"*"$old"*) found='several places' ;;
*"$old"*) found='one place' ;;
*) found='no place' ;;
esac
if [ "$found" != "one place" ]; then
	echo "$0: $file has $found with: $old" >&2
	exit 2
fi

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
printf '%s%s%s\n' "${text%%"$old"*}" "$new" "${text#*"$old"}" >"$dir/$(basename "$file")"
printf '{"Replace": {"%s": "%s"}}\n' "$file" "$dir/$(basename "$file")" >"$dir/overlay.json"
GOFLAGS="${GOFLAGS:-} -overlay=$dir/overlay.json" "$@"
