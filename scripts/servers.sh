#!/bin/sh
# Checks that the programs which stocklock starts are on this machine:
#
#   scripts/servers.sh bash redis mysql etcd cc chromium img2webp promtool
#
# On Debian and Ubuntu it installs missing programs if it may. On other systems, and without the
# right to install, it prints what to install. It starts no service: stocklock runs private servers.
set -eu

PATH=$PATH:/usr/sbin:/usr/local/sbin:/usr/libexec:/opt/homebrew/bin:/usr/local/bin # the search path of internal/testserver

say() { printf '%s\n' "$*" >&2; }

refuse() { # refuse COMMAND: print what is missing and the command that installs it; exit 1
	say "servers.sh: not installed: $missing. Install with: $1"
	exit 1
}

any() { # any PROGRAM...: succeeds if one of them is on the PATH
	for program; do
		if command -v "$program" >/dev/null 2>&1; then return 0; fi
	done
	return 1
}

lacks() { # lacks PROGRAMS NAME APT DNF APK BREW: adds to what is missing, unless one of the programs is there
	# shellcheck disable=SC2086 # one word per program
	if any $1; then return; fi
	missing="$missing, $2" apt="$apt $3" dnf="$dnf $4" apk="$apk $5" brew="$brew $6"
}

look() { # look NEED...: sets $missing, and its packages in $apt, $dnf, $apk and $brew, and $by_hand
	missing='' apt='' dnf='' apk='' brew='' by_hand=''
	for need; do
		case $need in
		bash) lacks bash bash bash bash bash bash ;; # Alpine has none
		redis) lacks 'redis-server valkey-server' 'Redis or Valkey (redis-server or valkey-server)' redis-server valkey redis redis ;;
		mysql) lacks 'mariadbd mysqld' 'MariaDB or MySQL (mariadbd or mysqld)' mariadb-server mariadb-server mariadb mariadb ;;
		etcd) lacks etcd etcd etcd-server etcd etcd etcd ;;
		promtool) lacks promtool "Prometheus' promtool" prometheus golang-github-prometheus prometheus prometheus ;;
		img2webp) lacks img2webp img2webp webp libwebp-tools libwebp-tools webp ;;
		cc)
			compiler=$("${GO:-go}" env CC)
			lacks "${compiler%% *}" "a C compiler ($compiler)" 'gcc libc6-dev' gcc 'gcc musl-dev' llvm
			;;
		chromium)
			if any chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable; then continue; fi
			if [ -x "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" ]; then continue; fi
			lacks '' 'Chromium (chromium-headless-shell, chromium or google-chrome)' fonts-dejavu-core chromium 'chromium font-dejavu' google-chrome
			if grep -qs '^ID.*ubuntu' /etc/os-release; then # it has Chromium as a snap alone
				by_hand=' and Google Chrome, from https://www.google.com/chrome'
			else
				apt="$apt chromium-headless-shell"
			fi
			;;
		*)
			say "servers.sh: unknown program \"$need\": want bash, redis, mysql, etcd, cc, chromium, img2webp or promtool"
			exit 2
			;;
		esac
	done
	missing=${missing#, }
}

look "$@"
if [ -z "$missing" ]; then exit 0; fi

if ! any apt-get; then
	if any brew; then refuse "brew install$brew"; fi
	if any dnf; then refuse "sudo dnf install$dnf"; fi
	if any apk; then refuse "sudo apk add$apk"; fi
	refuse "your package manager"
fi

if [ "$(id -u)" = 0 ]; then
	as_root=env
elif any sudo && sudo -n true 2>/dev/null; then
	as_root='sudo -n env'
else
	refuse "sudo apt-get install$apt$by_hand"
fi

say "installing$apt for: $missing"
log=$(mktemp)
policy=/usr/sbin/policy-rc.d # keeps Debian's packages from starting their services
ours=''
cleanup() {
	if [ -n "$ours" ]; then $as_root rm -f $policy; fi
	rm -f "$log"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
if [ ! -e $policy ]; then
	ours=yes
	printf '#!/bin/sh\nexit 101\n' | $as_root tee $policy >/dev/null
	$as_root chmod 755 $policy
fi

apt_get() { $as_root DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 "$@" </dev/null >>"$log" 2>&1; }

# The package source that does not answer may not be the one that is needed.
apt_get update || say "apt-get update failed; continuing with the existing package lists"
# shellcheck disable=SC2086 # one word per package
if ! apt_get install --no-install-recommends $apt; then
	tail -n 15 "$log" >&2
	refuse "sudo apt-get install$apt$by_hand (the attempt above failed)"
fi
wanted=$apt
look "$@"
if [ -n "$by_hand" ]; then refuse "hand:${by_hand# and}"; fi
if [ -n "$missing" ]; then refuse "hand: the packages$wanted are installed, but their programs are not on the PATH ($PATH)"; fi
