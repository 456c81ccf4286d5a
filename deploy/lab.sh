#!/bin/sh
# Starts the lab in its container. The user lab runs everything, and has no home: the template of
# MySQL is kept in /tmp. A mounted /out belongs to a user of the host: it is opened to both.
set -eu
if [ "$(id -u)" != 0 ]; then exec loadtest "$@"; fi
mkdir -p /out/runs
chmod 0777 /out /out/runs
HOME=/tmp exec setpriv --reuid=lab --regid=lab --clear-groups loadtest "$@"
