#!/bin/sh
# Copies this package, with its scripts and tests, into another module:
#   internal/redislock/copy.sh ../shop/lock example.com/shop/lock
# Then run go mod tidy there: it needs go-redis v9, and its tests a few more libraries.
set -eu
if [ $# -ne 2 ]; then
	echo "usage: $0 FOLDER IMPORT-PATH" >&2
	exit 2
fi
if [ -e "$1" ]; then
	echo "$0: $1 exists: name a folder that is to be made" >&2
	exit 1
fi
from=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cp -R "$from/." "$1"
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
