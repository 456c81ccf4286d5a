#!/bin/sh
# Copies this package, with its scripts and tests, into another module:
#   internal/redislock/copy.sh ../shop/lock example.com/shop/lock
# Then run go mod tidy there: it needs Go 1.26 and go-redis 9.19, and its tests a few more libraries.
set -eu
if [ $# -ne 2 ]; then
	echo "usage: $0 FOLDER IMPORT-PATH" >&2
	exit 2
fi
if [ -e "$1" ]; then
	echo "$0: $1 exists: name a folder that is to be made" >&2
	exit 1
fi
# The module that it is copied into, if there is one, must not fix an older version of either.
module=$(dirname "$1")
while [ ! -d "$module" ]; do module=$(dirname "$module"); done
needs() { # NAME LEAST VERSION, which is empty if the module names none
	if [ -n "$3" ] && [ "$(printf '%s\n%s\n' "$2" "${3#v}" | sort -V | head -n 1)" != "$2" ]; then
		echo "$0: the module in $module has $1 $3: it needs $2 or later" >&2
		exit 1
	fi
}
mod=$(cd "$module" && go env GOMOD)
if [ -f "$mod" ]; then
	needs go 1.26 "$(sed -n 's/^go //p' "$mod")"
	needs github.com/redis/go-redis/v9 9.19 "$(sed -n 's|^\(require\)\{0,1\}[[:space:]]*github.com/redis/go-redis/v9 \([^ ]*\).*|\2|p' "$mod")"
fi
from=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cp -R "$from/." "$1"
# What is tested once for all copies stays where the protocol is changed: the model, the topologies of Redis, this
# folder. The soak of a copy has a tag.
(cd "$1" && rm -f copy_test.go past_test.go polling/past_test.go model_*test.go topology_test.go failover_test.go)
if ! grep -q '^//go:build' "$1/soak_test.go"; then
	{ printf '//go:build soak\n\n'; cat "$1/soak_test.go"; } >"$1/soak_test.go.new"
	mv "$1/soak_test.go.new" "$1/soak_test.go"
fi
find "$1" -name '*.go' -o -name copy.sh | while read -r file; do
	sed "s|stocklock/internal/redislock|$2|g" "$file" > "$file.new"
	cat "$file.new" > "$file" # keeps its mode
	rm "$file.new"
done
# A copy of a copy keeps the line that names the version.
version=$(sed -n 's/^const Version = "\(.*\)"$/\1/p' "$from/../flags/version.go" 2>/dev/null) || true
if [ -n "$version" ]; then
	{ printf '// Copied from stocklock %s: its CHANGELOG.md says what has changed since.\n\n' "$version"; cat "$1/doc.go"; } >"$1/doc.go.new"
	mv "$1/doc.go.new" "$1/doc.go"
fi
