#!/bin/sh
# Runs all tests of the lock on three servers: the redis-server of the PATH, and
# Redis 8 and Valkey 9 from Debian unstable, which are unpacked below out/servers and not installed. That
# takes apt-get, dpkg and Debian's keys, and no rights. The first one is Redis 7.0, the lowest version that the lock is
# for, where it comes from Debian 12 or Ubuntu 24.04, as in CI. Redis 8 comes from experimental, where that
# has a later one: Redis 8.4 and later know DELEX.
#
#   scripts/lock-on.sh                                   all three
#   scripts/lock-on.sh /opt/valkey/bin/valkey-server     one
#   TESTS=TestCluster scripts/lock-on.sh                 some of the tests
set -eu
cd "$(dirname "$0")/.."

# All by default: a list of names would go on matching nothing when a test gets another name.
TESTS=${TESTS:-.}

unpack() { # unpack: Debian's servers, and the libraries that they were built with
	to=$PWD/out/servers
	if [ -e "$to/done" ]; then return; fi
	keys=/usr/share/keyrings/debian-archive-keyring.gpg # on Ubuntu, of the package debian-archive-keyring
	for needed in apt-get dpkg $keys; do
		if ! command -v $needed >/dev/null && [ ! -e $needed ]; then
			echo "lock-on.sh: no $needed to get Redis 8 and Valkey 9 with: name a server, as in make lock-on SERVER=/opt/valkey/bin/valkey-server" >&2
			exit 1
		fi
	done
	echo "lock-on.sh: downloading Redis 8 and Valkey 9 from Debian unstable" >&2
	rm -rf "$to"
	mkdir -p "$to/lists/partial" "$to/archives/partial" "$to/root"
	: >"$to/status"
	for suite in sid experimental; do
		echo "deb [signed-by=$keys] http://deb.debian.org/debian $suite main"
	done >"$to/sources.list"
	printf 'Package: redis-*\nPin: release a=experimental\nPin-Priority: 900\n' >"$to/preferences"
	set -- -q -o Dir::Etc::SourceList="$to/sources.list" -o Dir::Etc::SourceParts=- \
		-o Dir::Etc::Preferences="$to/preferences" -o Dir::Etc::PreferencesParts=- -o Dir::State="$to" -o Dir::State::Lists="$to/lists" \
		-o Dir::State::Status="$to/status" -o Dir::Cache="$to" -o Dir::Cache::Archives="$to/archives" -o APT::Sandbox::User= -o Acquire::Languages=none
	apt-get "$@" update >&2
	apt-get "$@" -y --no-install-recommends --download-only -o Debug::NoLocking=1 install redis-server valkey-server >&2
	for package in "$to"/archives/*.deb; do dpkg -x "$package" "$to/root"; done
	lib=$(dirname "$(find "$to/root" -name 'libc.so.6' | head -n 1)")
	for name in redis valkey; do
		mkdir -p "$to/$name"
		cat >"$to/$name/redis-server" <<END
#!/bin/sh
exec $lib/ld-linux-*.so.* --library-path $lib --argv0 redis-server $to/root/usr/bin/$name-check-rdb "\$@"
END
		chmod 755 "$to/$name/redis-server"
	done
	rm -rf "$to/archives" "$to/lists" "$to"/*.bin
	touch "$to/done"
}

try() { # try FOLDER: runs the tests on its redis-server
	version=$(PATH="$1:$PATH" redis-server --version)
	echo "== $version"
	PATH="$1:$PATH" ${GO:-go} test -count=1 -timeout 20m -run "$TESTS" ./internal/redislock/... || failed="$failed
$version"
}

failed=''
if [ $# -gt 0 ]; then
	[ -x "$1" ] || { echo "lock-on.sh: no program $1" >&2; exit 2; }
	link=$(mktemp -d)
	trap 'rm -rf "$link"' EXIT
	ln -s "$(realpath "$1")" "$link/redis-server"
	try "$link"
else
	unpack
	try /nonexistent # what the PATH has
	try "$PWD/out/servers/redis"
	try "$PWD/out/servers/valkey"
fi
if [ -n "$failed" ]; then
	echo "lock-on.sh: failed on:$failed" >&2
	exit 1
fi
