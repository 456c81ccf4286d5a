#!/bin/sh
# Installs axe-core, in the version that is locked here, into a folder beside it: TestAxeFindsNothing holds every
# view of the live page against it, and is skipped without it.
set -eu
cd "$(dirname "$0")"
if command -v npm >/dev/null 2>&1; then
	npm ci --loglevel=error --no-audit --no-fund --ignore-scripts
else
	echo "install.sh: no npm: the page is not held against axe-core" >&2
fi
