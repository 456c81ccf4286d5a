#!/bin/sh
# Copies the shop into a module of its own: with the lock, the strategies fit for production, the
# schema, the deployments and all tests, and without the lab.
#   internal/shop/copy.sh ../shop example.com/shop
#   internal/shop/copy.sh --ways conditional,batched [--reservations] ../shop example.com/shop
# With --ways, it has only these strategies, of which the first is the default. Without one that needs a lock, it has
# neither the lock nor Redis. Without --reservations, it has none; their tables stay in the schema.
#
# Then run make lint test there. It needs the module proxy, and the tests a MySQL, and a Redis where there are locks.
set -eu
gnu() { [ "$(echo ab | "$1" 's/a\|x/\Uy/' 2>/dev/null)" = Yb ]; }
if ! gnu sed; then
	if ! gnu gsed; then
		echo "$0: needs GNU sed: brew install gnu-sed" >&2
		exit 1
	fi
	sed() { gsed "$@"; }
fi
ways=
reservations=yes
if [ "${1-}" = --ways ] && [ $# -gt 1 ]; then
	ways=$(printf %s "$2" | tr , ' ')
	reservations=
	shift 2
	if [ "${1-}" = --reservations ]; then
		reservations=yes
		shift
	fi
fi
if [ $# -ne 2 ]; then
	echo "usage: $0 [--ways STRATEGY,... [--reservations]] FOLDER MODULE" >&2
	exit 2
fi
if [ -e "$1" ]; then
	echo "$0: $1 exists: name a folder that is to be made" >&2
	exit 1
fi
from=$(cd "$(dirname "$0")/../.." && pwd -P)
file_of() { echo "internal/strategy/$(echo "$1" | tr - _).go"; }
for way in $ways; do
	if ! grep -qsF "Name:         \"$way\"" "$from/$(file_of "$way")"; then
		echo "$0: $way is no strategy of the production shop: $(cd "$from" && sed -n 's/^	Name: *"\(.*\)",$/\1/p' internal/strategy/*.go | paste -sd ' ' -)" >&2
		exit 2
	fi
done
near=$1
until [ -d "$near" ]; do near=$(dirname "$near"); done
case $(cd "$near" && pwd -P)/ in "$from"/*)
	echo "$0: $1 is in this repository: name a folder outside" >&2
	exit 1
esac
mkdir -p "$1"
(cd "$from" && tar -cf - --exclude=./.git --exclude=./bin --exclude=./out --exclude=./examples --exclude=./exercises --exclude=./production.env --exclude=./galera.env .) | tar -xf - -C "$1"
cd "$1"

# edit changes a file by a script of sed. It keeps its mode.
edit() {
	sed "$2" "$1" >"$1.new"
	cat "$1.new" >"$1"
	rm "$1.new"
}

# What only the lab needs, and how this repository is tested and shown.
rm -r internal/lab internal/shop/labmode internal/strategy/ladder internal/strategy/baskets internal/strategy/declared internal/shop/program/lab.go cmd/loadtest bench docs/make sql/lab tools/mutate
rm internal/stock/lab*.go internal/strategy/lab.go internal/shop/lab*.go internal/testserver/pair*.go internal/testserver/galera*.go internal/testserver/etcd.go internal/testserver/records.go internal/testserver/mysql_copies.go
rm -rf internal/shop/copy.sh scripts docker-compose.yml deploy/lab.sh .ci .github .env pages.go README* CHANGELOG.md CONTRIBUTING.md

# Of the pages, those on the shop and its lock, without their links to the others.
find docs -mindepth 1 -maxdepth 1 ! -name guarantees.md ! -name 'lock-*.md' ! -name operate.md ! -name reservations.md -exec rm -r {} +
for page in docs/*.md; do
	sed -E 's#\[([^]]*)\]\(((measurements|schedules|choose|using|peers|glossary|mistakes/[a-z-]*)\.md|\.\./examples/|\.\./bench/)[^)]*\)#\1#g; /^<!-- (made by|end of what is made)/d' "$page" >"$page.new"
	mv "$page.new" "$page"
done

# Of reservations, neither the stub of a provider nor the lab.
edit docs/reservations.md '/^\$ go run \.\/examples\/checkout/d; s/ \[*`examples\/checkout`.*//; /^a backend that pays\.$/d; /^## In the lab$/,$d'

# The service is named like the module, and the database as it was.
name=$(basename "$2")
for file in docker-compose.*.yml deploy/kubernetes/* deploy/grafana/* deploy/galera/node.sh .devcontainer/* internal/shop/openapi.yaml internal/shop/tracing/tracing.go; do
	edit "$file" "s#stocklock-shop#$name#g; s#stocklock-\(production\|galera\)#$name-\1#g; s#title: stocklock shop#title: $name#; s#\(\"\?\(name\|uid\|title\)\"\?: \"\?\)stocklock#\1$name#; s#wsrep-cluster-name=stocklock#wsrep-cluster-name=$name#; s#make ready#make build#"
done

# The ways of selling that are not chosen. What knows the lock lies in files of its own, in whose place come empty ones.
locks=yes
if [ -n "$ways" ]; then
	default=${ways%% *}
	edit internal/shop/program/settings.go "s/^const defaultStrategy = .*/const defaultStrategy = \"$default\"/"
	for file in docker-compose.*.yml deploy/kubernetes/shop.yaml; do
		edit "$file" "/ SHOP_STRATEGY: /s/fenced-relative/$default/"
	done
	kept=$(for way in $ways; do echo "$way" | sed 's/-\([a-z]\)/\U\1/g'; done | paste -sd '|' -)
	awk -v kept="^($kept),\$" '/^var production/ { list = 1 } list && /^\t/ { name = $1; if (name !~ kept) next } /^}/ { list = 0 } { print }' internal/strategy/strategy.go >strategy.new
	mv strategy.new internal/strategy/strategy.go
	rm -r arch_test.go internal/strategy/*_test.go internal/strategy/strategytest internal/shop/lifecycle_test.go internal/shop/health_test.go internal/shop/metrics_test.go
	left_out=
	for file in $(grep -l '^	Name: ' internal/strategy/*.go); do
		name=$(sed -n 's/^	Name: *"\(.*\)",$/\1/p' "$file")
		case " $ways " in *" $name "*) continue ;; esac
		rm "$file"
		left_out="$left_out${left_out:+, }\"$name\""
	done
	edit internal/strategy/strategy.go "s/^var leftOut .*/var leftOut = []string{$left_out}/"
	edit internal/shop/harness_test.go "s/t.Fatal(err) \/\/ a copy may lack it/t.Skip(err)/; s/byName(t, \"fenced-relative\")/byName(t, \"$default\")/"
	case " $ways " in *" conditional "*) ;; *)
		for file in fuzz reservations; do edit internal/shop/${file}_test.go "s/byName(\([ft]\), \"conditional\")/byName(\1, \"$default\")/"; done
	esac
	case " $ways " in *" batched "*) ;; *)
		rm internal/stock/batch*.go
		edit internal/stock/errors_test.go '/"a batch": func/,/^\t\t},/d; /{"a batch"/d'
	esac
	if ! grep -qs 'readThen(' internal/strategy/optimistic.go internal/strategy/fenced.go; then
		rm internal/strategy/read_then.go
	fi
	case " $ways " in *" fenced "*) ;; *) edit internal/shop/program/run_test.go '/ beside absolute writes"/,+1d' ;; esac
	# shellcheck disable=SC2046 # names without spaces
	if [ -z "$(grep -L 'WithoutRedis: true' $(for way in $ways; do file_of "$way"; done))" ]; then
		locks=
	fi
fi
if [ -z "$locks" ]; then
	for file in internal/shop/program/*_test.go deploy/kubernetes/shop.yaml docker-compose.production.yml; do
		edit "$file" '/SHOP_REDIS$/,+1d; /SHOP_REDIS\|goodRedis\|redis-pool\|--lease\|SHOP_LEASE/d; /^  redis: &/d; /^  # Holds locks alone/,/^networks:/{/^networks:/!d}; /redis: {condition/d; s/ || !strings.Contains(last, "redis at 127.0.0.1:1")//; s/ --from-literal=redis=.*//'
	done
	edit docs/operate.md 's/MySQL, Redis and two/MySQL and two/; s/ REDIS_SHOP;/;/'
	edit internal/shop/program/run.go 's/, under a lock in Redis\././; s/ SHOP_REDIS=rediss[^ ]*//; s/ and SHOP_REDIS//'
	for page in docs/*.md SECURITY.md; do
		edit "$page" 's#\[\([^]]*\)\]([^)]*\(lock-[a-z]*\.md\|internal/redislock\|galera\)[^)]*)#\1#g'
	done
	rm -r deploy/galera docker-compose.galera.yml internal/redislock internal/redisconn internal/shop/redis.go internal/shop/redis_test.go internal/testserver/await.go internal/testserver/redis.go internal/testserver/cluster.go internal/testserver/find_test.go internal/testserver/group_test.go internal/testserver/main_test.go internal/shop/program/tracing_test.go docs/lock-*.md
	cat >internal/strategy/locks.go <<'END'
package strategy

// Locks is what strategies with a lock work on: nothing here.
type Locks struct{}

func (Locks) check(Strategy) error { return nil }
END
	cat >internal/shop/locks.go <<'END'
package shop

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"stocklock/internal/strategy"
)

// locks is what a shop has of locks: nothing here.
type locks struct{}

func newLocks(*strategy.Deps, *slog.Logger) *locks { return nil }

func (*locks) Close() error { return nil }

func (*locks) dependency() *dependency { panic("there is no lock") }

func (*locks) collectors() []prometheus.Collector { return nil }

var lockAnswers []answerTo

func redisUnreachable(error) bool { return false }

func redisAdvice(error) string { return "" }
END
	cat >internal/shop/locks_test.go <<'END'
package shop

import (
	"io"
	"testing"

	"stocklock/internal/strategy"
)

func redisURL(testing.TB) string { return "" }

func openLocks(testing.TB, string) (strategy.Locks, io.Closer) {
	return strategy.Locks{}, io.NopCloser(nil)
}
END
	cat >internal/shop/program/locks.go <<'END'
package program

import (
	"io"
	"log/slog"

	"github.com/alecthomas/kong"

	"stocklock/internal/strategy"
)

type lockSettings struct{}

var lockDefaults kong.Vars

func (lockSettings) open(*slog.Logger, *strategy.Deps) (io.Closer, error) { return io.NopCloser(nil), nil }
END
	cat >internal/shop/tracing/locks.go <<'END'
package tracing

import "stocklock/internal/strategy"

// Equip does nothing: there is no lock.
func (*Exporter) Equip(*strategy.Deps) error { return nil }
END
fi

# Reservations lie in files of their own, too.
if [ -z "$reservations" ]; then
	rm internal/stock/hold*.go internal/stock/payment.go internal/stock/transitions_test.go internal/shop/reservations*.go internal/shop/program/reservations.go docs/reservations.md
	for page in docs/*.md; do
		edit "$page" 's#\[\([^]]*\)\](reservations\.md[^)]*)#\1#g'
	done
	for file in docker-compose.*.yml deploy/kubernetes/shop.yaml; do
		edit "$file" '/SHOP_[A-Z_]*\(RESERVATION\|PAYMENT\)/d'
	done
	edit internal/shop/openapi.yaml 's#/problems/held-by-others, ##; /- .problems.\(held\|.*reservation\|already-confirmed\|already-extended\|.*payment\|.*reference\)/d'
	awk '{ match($0, /^ */) }
		skip && NF && RLENGTH <= depth { skip = 0 }
		/^  (\/api\/v1|- name: )\/?(reservations|payments)|^    (New)?Reservation[A-Za-z]*:|^    (Extension|Release|Confirmation|Payment|Reference):/ { skip = 1; depth = RLENGTH }
		!skip' internal/shop/openapi.yaml >openapi.new
	mv openapi.new internal/shop/openapi.yaml
	awk '/^      - alert:/ { skip = /Reservation|Payment/ } !skip' deploy/alerts.yml >alerts.new
	mv alerts.new deploy/alerts.yml
	edit deploy/alerts_test.yml '/- name: reservations/,$d'
	cat >internal/stock/hold.go <<'END'
package stock

import (
	"context"
	"errors"

	"gorm.io/gorm"
)

// Holder makes and ends reservations: there are none here.
type Holder any

// ErrHeld would refuse a sale because others hold the units.
var ErrHeld = errors.New("stock: others hold the units")

var holdWrites []string

// EndOverdue ends nothing.
func (*Store) EndOverdue(context.Context, string, Sale) (int, error) { return 0, nil }

func (s *Store) readRefused(ctx context.Context, sale Sale) ([]Item, error) { return s.ReadLines(ctx, sale) }

func heldOf(*gorm.DB, uint64) (int64, error) { return 0, nil }

func (*Store) holdsNothing(context.Context, string) error { return nil }

var erasesHolds []func(Tx, string) (int, error)

func (Tx) lockConfirmed(Order) ([]struct{}, error) { return nil, nil }

func (Tx) unpay([]struct{}, Order) error { return nil }
END
	cat >internal/shop/reservations.go <<'END'
package shop

import (
	"context"

	"github.com/gin-gonic/gin"
	"github.com/go-playground/validator/v10"
	"github.com/prometheus/client_golang/prometheus"
)

// Reservations would be the terms of reservations: there are none here.
type Reservations struct{}

func (*Reservations) check(Config) error { return nil }

func (*Shop) offerReservations() {}

func (*Shop) endReservations(context.Context) {}

func (*Shop) reservationRoutes(*gin.RouterGroup) {}

func (*Shop) paymentRoutes(*gin.RouterGroup) {}

func checkReservations(*validator.Validate) {}

var reservationAnswers []answerTo

type reservationMetrics struct{}

func (reservationMetrics) open(*Shop, *prometheus.Registry) {}
END
	cat >internal/shop/program/reservations.go <<'END'
package program

import "stocklock/internal/shop"

type reservationSettings struct{}

func (reservationSettings) reservations() *shop.Reservations { return nil }
END
fi

if [ -z "$locks$reservations" ]; then
	rm internal/shop/scrape_test.go
fi

# The image of the lab.
awk '/^FROM/ { lab = /AS (build-)?lab$/ } /^#.*--target lab/ { next } !lab' Dockerfile >Dockerfile.new
mv Dockerfile.new Dockerfile

find . -name '*.go' -o -name go.mod -o -name copy.sh | while read -r file; do
	edit "$file" "s|\"stocklock/|\"$2/|g; s|stocklock/internal/|$2/internal/|g; s|^module stocklock|module $2|; s|^const module = \"stocklock\"|const module = \"$2\"|"
done

version=$(sed -n 's/^const Version = "\(.*\)"$/\1/p' internal/flags/version.go)
cat >CHANGELOG.md <<END
# Changelog

## $version

Copied from stocklock $version: its CHANGELOG.md says what has changed there since.
END
cat >README.md <<END
# $2

A shop that sells limited stock, with a lock in Redis. Copied from stocklock $version, which also has the lab that tests it.

- [What is guaranteed, and what is not](docs/guarantees.md)
- [Operating a shop](docs/operate.md)
- [Reservations](docs/reservations.md)
- [The lock's protocol](docs/lock-protocol.md), with a model of it
- [Security](SECURITY.md), [the API](internal/shop/openapi.yaml) and [what changed](CHANGELOG.md)

\`make build lint test\` needs Go, the module proxy, a Redis and a MySQL or MariaDB.
END
cat >Makefile <<'END'
.PHONY: build lint test
build:
	go build -tags nomsgpack -trimpath -ldflags=-s -o bin/ ./cmd/shop
lint:
	test -z "$$(gofmt -l .)"
	go vet ./...
	go tool -modfile=tools/go.mod staticcheck ./...
test:
	go test ./...
END
mkdir -p .github/workflows
cat >.github/workflows/test.yml <<'END'
name: test
on: [push, pull_request]
permissions: {contents: read}
jobs:
  test:
    runs-on: ubuntu-24.04
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-go@v5
        with: {go-version-file: go.mod}
      - run: sudo apt-get update && sudo apt-get install --yes redis-server mariadb-server
      - run: make build lint test
END
if [ -n "$ways" ]; then
	gofmt -w internal
fi
if [ -z "$reservations" ]; then
	edit README.md '/docs\/reservations/d'
fi
if [ -z "$locks" ]; then
	edit README.md 's/, with a lock in Redis//; /docs\/lock-/d; s/, a Redis and a MySQL/ and a MySQL/'
	edit .github/workflows/test.yml 's/redis-server //'
fi
# As scripts/tidy.sh says: a test of an indirect dependency imports a module that is not always served.
go mod tidy -e
