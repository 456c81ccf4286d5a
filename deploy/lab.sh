#!/bin/sh
# Starts the lab in its container. A mounted /out belongs to a user of the host: it is opened to the
# user lab, and what that one keeps there to the host's, who runs everything, and has no home: the template of MySQL is kept in /tmp.
set -eu
if [ "$(id -u)" != 0 ]; then exec loadtest "$@"; fi
mkdir -p /out/runs
chmod 0777 /out /out/runs
HOME=/tmp exec setpriv --reuid=lab --regid=lab --clear-groups loadtest "$@"
