#!/bin/sh
# Fails when `go mod tidy -e` would change go.mod or go.sum of a module:
#
#   scripts/tidy.sh . bench tools
#
# -e, because a test of an indirect dependency imports a module that not every proxy serves.
set -u

code=0
for module; do
	if ! diff=$(${GO:-go} -C "$module" mod tidy -e -diff 2>/dev/null) || [ -n "$diff" ]; then
		printf '%s\n' "$diff" >&2
		echo "$module/go.mod is not tidy: run go -C $module mod tidy -e" >&2
		code=1
	fi
done
exit $code
