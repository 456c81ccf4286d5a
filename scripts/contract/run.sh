#!/bin/sh
# Starts MySQL, Redis and the production shop, and holds the shop to its OpenAPI contract with
# schemathesis, all checks, and with clients that are generated from it. It installs schemathesis into out/schemathesis if it is missing.
#
#   ARGS='--max-examples 500' scripts/contract/run.sh    more requests: any options of schemathesis run
set -eu

cd "$(dirname "$0")/../.."
version=4.32.5
venv=out/schemathesis

if [ -z "${SCHEMATHESIS:-}" ]; then
	if [ ! -x $venv/bin/schemathesis ]; then
		command -v python3 >/dev/null || { echo "contract/run.sh: not installed: python3, which runs schemathesis" >&2; exit 1; }
		echo "installing schemathesis $version into $venv" >&2
		mkdir -p out
		python3 -m venv $venv
		$venv/bin/pip install --quiet "schemathesis==$version"
	fi
	SCHEMATHESIS=$PWD/$venv/bin/schemathesis
fi
export SCHEMATHESIS
export SCHEMATHESIS_HOOKS=hooks PYTHONPATH="$PWD/scripts/contract" PYTHONDONTWRITEBYTECODE=1
LAB_TAGS=contract exec scripts/lab-go.sh test -run 'TestSchemathesisFindsNothing|TestGeneratedClients' -count=1 -timeout 30m -v ./internal/lab/shoptest
