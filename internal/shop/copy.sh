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
from=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
(cd "$from" && tar -cf - --exclude=./.git --exclude=./bin --exclude=./out .) | tar -xf - -C "$1"
cd "$1"

# What only the lab needs, and how this repository is tested and shown.
rm -r internal/lab internal/shop/labmode internal/strategy/ladder internal/shop/program/lab.go cmd/loadtest bench docs/make
rm -rf internal/shop/copy.sh scripts docker-compose.yml deploy/lab.sh .ci .github .env

# The image of the lab.
awk '/^FROM/ { lab = /AS (build-)?lab$/ } /^#.*--target lab/ { next } !lab' Dockerfile >Dockerfile.new
mv Dockerfile.new Dockerfile

find . -name '*.go' -o -name go.mod -o -name copy.sh | while read -r file; do
	sed "s|\"stocklock/|\"$2/|g; s|stocklock/internal/|$2/internal/|g; s|^module stocklock|module $2|; s|^const module = \"stocklock\"|const module = \"$2\"|" "$file" >"$file.new"
	cat "$file.new" >"$file" # keeps its mode
	rm "$file.new"
done

version=$(sed -n 's/^const Version = "\(.*\)"$/\1/p' internal/flags/version.go)
echo "# Copied from stocklock $version: its CHANGELOG.md says what has changed since." >Makefile
cat >>Makefile <<'END'
.PHONY: build lint test
build:
	go build -trimpath -o bin/ ./cmd/shop
lint:
	test -z "$$(gofmt -l .)"
	go vet ./...
	go tool -modfile=tools/go.mod staticcheck ./...
test:
	go test ./...
END
# As scripts/tidy.sh says: a test of an indirect dependency imports a module that is not always served.
go mod tidy -e
