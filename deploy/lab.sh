#!/bin/sh
# Starts the lab in its container. A mounted /out belongs to a user of the host: it is opened to the
# user lab, who runs everything.
set -eu
if [ "$(id -u)" != 0 ]; then exec loadtest "$@"; fi
mkdir -p /out
chmod 0777 /out
exec setpriv --reuid=lab --regid=lab --clear-groups loadtest "$@"
