#!/bin/sh
# Succeeds if a node of Galera may be written to: it is with the majority, and no donor of a state transfer.
# It does not wait for what the node has yet to apply: while the others find out that one has died, all would wait.
# HAProxy gives the node's address and port as the third and fourth argument. Without arguments it is this node.
state=$(mariadb --no-defaults --host="${3:-127.0.0.1}" --port="${4:-3306}" --user=checks --connect-timeout=1 --batch \
	--init-command="SET SESSION wsrep_sync_wait = 0" \
	--skip-column-names --execute="SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'wsrep_local_state'")
[ "$state" = 4 ] # Synced
