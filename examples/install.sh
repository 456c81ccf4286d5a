#!/bin/sh
# Installs what the example shops import, in the versions that are locked here, into folders beside them:
#
#   examples/install.sh           Python's and Node's, as far as python3 and npm are there
#   examples/install.sh java      builds the Java shop, with a JDK from 17 on and Maven
#
# The tests of the examples skip a shop whose packages are missing.
set -eu
failed=
cd "$(dirname "$0")"

if [ "${1-}" = java ]; then
	cd java
	exec mvn --quiet --batch-mode package
fi
if ! command -v python3 >/dev/null 2>&1; then
	echo "install.sh: no python3: the Python shop stays without its packages" >&2
elif [ -x python/.venv/bin/pip ] || python3 -m venv --clear python/.venv; then # what a failure has left has no pip
	python/.venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r python/requirements.txt || failed=yes
else
	echo "install.sh: python3 cannot make a venv: the Python shop stays without its packages" >&2
fi
if command -v npm >/dev/null 2>&1; then
	(cd node && npm ci --loglevel=error --no-audit --no-fund --ignore-scripts)
else
	echo "install.sh: no npm: the Node shop stays without its packages" >&2
fi
if [ -n "$failed" ]; then
	echo "install.sh: pip has failed: the Python shop stays without its packages" >&2
	exit 1
fi
