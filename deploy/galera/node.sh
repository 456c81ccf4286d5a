#!/bin/sh
# Starts the node of Galera that NODE names, of galera-1 to galera-3. Where none has data, the first one makes
# the cluster. Where all have ended, the last one that did makes it again.
set -eu
data=/var/lib/mysql
nodes="galera-1 galera-2 galera-3"

some_node_answers() {
	for node in $nodes; do
		timeout 2 is-synced.sh - - "$node" 3306 2>/dev/null && return # a name that is not there yet takes long
	done
	return 1
}

state=$data/grastate.dat first=$data/makes-the-cluster
if [ ! -d "$data/mysql" ]; then
	mariadb-install-db --no-defaults --datadir="$data" --skip-test-db --auth-root-socket-user=mysql >/dev/null
	# A first node whose data were lost joins the others.
	[ "$NODE" != galera-1 ] || some_node_answers || touch "$first"
elif [ -s "$state" ]; then # with zeros, too: Galera writes them while it changes the schema
	rm -f "$first" # it has been a member
fi
if [ -f "$first" ] || grep -qs 'safe_to_bootstrap: 1' "$state"; then
	[ ! -f "$first" ] || rm -f "$state" # of a first start that failed
	set -- --wsrep-new-cluster --init-file=/tmp/accounts.sql
	(
		umask 077
		cat >/tmp/accounts.sql <<-SQL
			CREATE DATABASE IF NOT EXISTS stocklock;
			CREATE USER IF NOT EXISTS migrate IDENTIFIED BY '$MYSQL_MIGRATE_PASSWORD';
			GRANT ALL ON stocklock.* TO migrate WITH GRANT OPTION;
			CREATE USER IF NOT EXISTS shop IDENTIFIED BY '$MYSQL_SHOP_PASSWORD';
			CREATE USER IF NOT EXISTS checks;
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
