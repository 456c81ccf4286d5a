#!/bin/sh
# Starts the node of Galera that NODE names, of galera-1 to galera-3. With NEW_CLUSTER, the first one makes the cluster
# if it has no data, and no other node answers. Where all have ended, the last one that did makes it again. Arguments are
# mariadbd's.
set -eu
data=/var/lib/mysql
nodes="galera-1 galera-2 galera-3"

some_node_answers() {
	for node in $nodes; do
		timeout 2 is-synced.sh - - "$node" 3306 2>/dev/null && return # a name that is not there yet takes long
	done
	return 1
}

state=$data/grastate.dat makes=
[ -d "$data/mysql" ] || mariadb-install-db --no-defaults --datadir="$data" --skip-test-db --auth-root-socket-user=mysql >/dev/null
if [ -d "$data/stocklock" ]; then
	! grep -qs 'safe_to_bootstrap: 1' "$state" || makes=yes
elif [ "$NODE" = galera-1 ] && [ -n "${NEW_CLUSTER:-}" ] && ! some_node_answers; then
	# An empty node cannot know whether the others have data, which they would lose to a new cluster. So whoever starts
	# them for the first time says so. An empty node otherwise tries to join, until it can.
	makes=yes
	rm -f "$state" # of a start that failed
fi
if [ -n "$makes" ]; then
	set -- "$@" --wsrep-new-cluster --init-file=/tmp/accounts.sql
	(
		umask 077
		# The database is last: a node that has it is not empty.
		cat >/tmp/accounts.sql <<-SQL
			CREATE USER IF NOT EXISTS migrate IDENTIFIED BY '$MYSQL_MIGRATE_PASSWORD';
			GRANT ALL ON stocklock.* TO migrate WITH GRANT OPTION;
			CREATE USER IF NOT EXISTS shop IDENTIFIED BY '$MYSQL_SHOP_PASSWORD';
			CREATE USER IF NOT EXISTS checks;
			CREATE DATABASE IF NOT EXISTS stocklock;
		SQL
	)
fi

# A commit is on all nodes before it is answered, so it needs no disk of its own: innodb-flush-log-at-trx-commit
# still stays 1, for the day on which all nodes lose their power. A node that does not answer for two
# seconds is left out, so that the others can go on.
exec mariadbd --no-defaults --datadir="$data" --socket=/tmp/mysqld.sock --bind-address=0.0.0.0 --max-connections=500 \
	--binlog-format=ROW --innodb-autoinc-lock-mode=2 --wsrep-on=ON --wsrep-provider=/usr/lib/galera/libgalera_smm.so \
	--wsrep-cluster-name=stocklock --wsrep-node-name="$NODE" --wsrep-node-address="$NODE" \
	--wsrep-cluster-address="gcomm://$(echo "$nodes" | tr ' ' ,)" --wsrep-sst-method=rsync --wsrep-sync-wait=1 \
	--wsrep-provider-options="evs.keepalive_period=PT0.5S;evs.suspect_timeout=PT2S;evs.inactive_timeout=PT5S" "$@"
