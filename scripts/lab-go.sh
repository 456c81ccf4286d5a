#!/bin/sh
# Runs the go command with the flags of all builds, tests and checks of the lab, so that they share
# what is compiled:
#
#   scripts/lab-go.sh build -o bin/ ./cmd/shop ./cmd/loadtest
#   LAB_TAGS=explore scripts/lab-go.sh test ./internal/lab/survey      with another tag
set -eu

# nomsgpack is gin without a codec of 112,000 lines, which nothing here uses. -s links neither symbols nor
# data for debuggers, and -dwarf=false makes none. -l is without inlining, in half of the compiler's time: it is
# for the lab, for what starts a shop, and for modules that no sale uses. It is not for the shop, its lock and bench,
# whose speed counts.
GOFLAGS="${GOFLAGS:-} -tags=lab,nomsgpack${LAB_TAGS:+,$LAB_TAGS} -ldflags=-s -gcflags=all=-dwarf=false"
for part in internal/lab/... internal/testserver internal/redisconn cmd/... docs/... exercises/... internal/shop/labmode \
	internal/shop/program internal/shop/tracing internal/strategy/baskets internal/strategy/declared internal/strategy/ladder; do
	GOFLAGS="$GOFLAGS '-gcflags=stocklock/$part=-l -dwarf=false'"
done
for module in github.com/chromedp github.com/getkin github.com/jedib0t github.com/oasdiff github.com/pressly github.com/quic-go \
	github.com/santhosh-tekuri github.com/yuin go.mongodb.org go.opentelemetry.io; do
	GOFLAGS="$GOFLAGS '-gcflags=$module/...=-l -dwarf=false'"
done
export GOFLAGS
# A compiler lives for seconds: collecting less often takes a sixth of its processor time away.
case $* in
*build\ * | *test\ * | *run\ *) export GOGC="${GOGC:-400}" GOMEMLIMIT="${GOMEMLIMIT:-1GiB}" ;;
esac
unset LAB_TAGS # programs that a test builds have the usual tags
exec "${GO:-go}" "$@"
