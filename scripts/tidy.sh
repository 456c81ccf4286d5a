#!/bin/sh
# Fails when go.mod and go.sum of a module are not as `go mod tidy -e` leaves them:
#
#   scripts/tidy.sh . bench
#
# -e: a dependency of a dependency has a test that imports a module which not every proxy serves.
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
