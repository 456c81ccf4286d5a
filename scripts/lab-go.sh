#!/bin/sh
# Runs the go command with the flags by which all of the lab is built and tested, so that what one of
# them has compiled serves the others:
#
#   scripts/lab-go.sh build -o bin/ ./cmd/shop ./cmd/loadtest
#   LAB_TAGS=explore scripts/lab-go.sh test ./internal/lab/explore     with another tag
set -eu

# nomsgpack is gin without a codec of 112,000 lines, which nothing here uses. What only a debugger reads
# is neither made nor linked. Without inlining the compiler takes half the time: so the lab is compiled,
# and not the shop, its lock and bench, whose speed counts.
GOFLAGS="${GOFLAGS:-} -tags=lab,nomsgpack${LAB_TAGS:+,$LAB_TAGS} -ldflags=-w -gcflags=all=-dwarf=false"
for part in internal/lab/... internal/testserver cmd/loadtest docs/...; do
	GOFLAGS="$GOFLAGS '-gcflags=stocklock/$part=-l -dwarf=false'"
done
export GOFLAGS
unset LAB_TAGS # what is built on the way has the usual tags
exec "${GO:-go}" "$@"
