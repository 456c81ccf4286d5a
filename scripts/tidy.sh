#!/bin/sh
# Fails when gofmt would change a file, or when `go mod tidy -e` would change the go.mod of one of the
# modules that are named:
#
#   scripts/tidy.sh [MODULE...]
#
# A test of an indirect dependency imports a module that a proxy serves on one day and not on another.
# That is why the command has -e, and why its opinion on go.sum is not asked:
# a build fails by itself when a line of go.sum is missing.
set -u
cd "$(dirname "$0")/.."

code=0
unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
	printf 'run gofmt -w on: %s\n' "$unformatted" >&2
	code=1
fi
for module; do
	if all=$("${GO:-go}" -C "$module" mod tidy -e -diff 2>&1); then continue; fi
	diff=$(printf '%s\n' "$all" | awk '/^diff / { wanted = /go\.mod$/ } wanted')
	case $all in
	*"diff "*) ;;
	*)
		printf '%s: %s\n' "$module" "$all" >&2
		code=1
		;;
	esac
	if [ -n "$diff" ]; then
		printf '%s\n' "$diff" >&2
		echo "$module/go.mod is not tidy: run go -C $module mod tidy -e" >&2
		code=1
	fi
done
exit $code
