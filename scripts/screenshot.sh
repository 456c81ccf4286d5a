#!/usr/bin/env bash
# Takes the pictures of the report and of the page again: docs/report.png and docs/live. Minutes.
#
#   scripts/screenshot.sh
set -euo pipefail
cd "$(dirname "$0")/.."

make ready
scripts/servers.sh chromium img2webp
if [ -z "$(fc-list :lang=zh)" ]; then
	echo "screenshot.sh: no Chinese font, and the page has Chinese words: apt-get install fonts-wqy-microhei" >&2
	exit 1
fi
mkdir -p out docs/live
bin/loadtest run owner-checked:pause --out out/screenshot.json
SCREENSHOT_OF=$PWD/out/screenshot.json SCREENSHOT=$PWD/docs/report.png \
	scripts/lab-go.sh test -count=1 -run TestScreenshot ./internal/lab/live
LIVE_PICTURES=$PWD/docs/live scripts/lab-go.sh test -count=1 -timeout 15m -run 'TestThePage$|TestThePlanOfAClass|TestTopologiesOnThePage' ./internal/lab/live
