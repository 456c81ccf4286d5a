#!/bin/sh
# Copies the shop into a module of its own: with the lock, the strategies fit for production, the
# schema, the deployments and all tests, and without the lab.
#   internal/shop/copy.sh ../shop example.com/shop
# Then run make lint test there. It needs the module proxy, and the tests a Redis and a MySQL.
set -eu
if [ $# -ne 2 ]; then
	echo "usage: $0 FOLDER MODULE" >&2
	exit 2
fi
if [ -e "$1" ]; then
	echo "$0: $1 exists: name a folder that is to be made" >&2
	exit 1
fi
from=$(cd "$(dirname "$0")/../.." && pwd -P)
near=$1
until [ -d "$near" ]; do near=$(dirname "$near"); done
case $(cd "$near" && pwd -P)/ in "$from"/*)
	echo "$0: $1 is in this repository: name a folder outside" >&2
	exit 1
esac
mkdir -p "$1"
(cd "$from" && tar -cf - --exclude=./.git --exclude=./bin --exclude=./out --exclude=./examples .) | tar -xf - -C "$1"
cd "$1"

# What only the lab needs, and how this repository is tested and shown.
rm -r internal/lab internal/shop/labmode internal/strategy/ladder internal/strategy/baskets internal/strategy/declared internal/shop/program/lab.go cmd/loadtest bench docs/make sql/lab tools/mutate
rm internal/testserver/pair*.go internal/testserver/galera*.go internal/testserver/etcd.go internal/testserver/records.go internal/testserver/mysql_copies.go
rm -rf internal/shop/copy.sh scripts docker-compose.yml deploy/lab.sh .ci .github .env pages.go README* CHANGELOG.md CONTRIBUTING.md

# Of the pages, those on the shop and its lock, without their links to the others.
find docs -mindepth 1 -maxdepth 1 ! -name guarantees.md ! -name 'lock-*.md' ! -name operate.md ! -name reservations.md -exec rm -r {} +
for page in docs/*.md; do
	sed -E 's#\[([^]]*)\]\(((measurements|schedules|choose|using|peers|glossary|mistakes/[a-z-]*)\.md|\.\./examples/)[^)]*\)#\1#g' "$page" >"$page.new"
	mv "$page.new" "$page"
done

# The service is named like the module, and the database as it was.
name=$(basename "$2")
for file in docker-compose.*.yml deploy/kubernetes/* deploy/grafana/* deploy/galera/node.sh .devcontainer/* internal/shop/openapi.yaml internal/shop/tracing/tracing.go; do
	sed "s#stocklock-shop#$name#g; s#stocklock-\(production\|galera\)#$name-\1#g; s#title: stocklock shop#title: $name#; s#\(\"\?\(name\|uid\|title\)\"\?: \"\?\)stocklock#\1$name#; s#wsrep-cluster-name=stocklock#wsrep-cluster-name=$name#; s#make ready#make build#" "$file" >"$file.new"
	cat "$file.new" >"$file" # keeps its mode
	rm "$file.new"
done

# The image of the lab.
awk '/^FROM/ { lab = /AS (build-)?lab$/ } /^#.*--target lab/ { next } !lab' Dockerfile >Dockerfile.new
mv Dockerfile.new Dockerfile

find . -name '*.go' -o -name go.mod -o -name copy.sh | while read -r file; do
	sed "s|\"stocklock/|\"$2/|g; s|stocklock/internal/|$2/internal/|g; s|^module stocklock|module $2|; s|^const module = \"stocklock\"|const module = \"$2\"|" "$file" >"$file.new"
	cat "$file.new" >"$file" # keeps its mode
	rm "$file.new"
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
# As scripts/tidy.sh says: a test of an indirect dependency imports a module that is not always served.
go mod tidy -e
