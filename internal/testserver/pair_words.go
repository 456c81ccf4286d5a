package testserver

import (
	"regexp"
	"strconv"
	"time"
)

// pairWords is what MySQL and MariaDB call the same things.
type pairWords struct {
	binlog                                     []string                     // options of both servers
	waits                                      func(time.Duration) []string // of a primary that waits for its replica
	acknowledges                               []string                     // of that replica
	readOnly                                   func(value string) string    // the statement
	follow                                     string                       // with host, port, user and password
	start, stop                                string                       // following
	forget                                     string                       // whom it followed
	stopReceiving, stopApplying, startApplying string

	status, receiving, applying, received string // the statement that asks a replica, and columns of its answer
	applied, committed                    string // expressions
	clients, waiting, semiSync            string // status variables of a primary
	committing                            string // states of a connection whose commit waits for a replica

	includes string // an expression with a set of GTIDs: the replica has applied them

	gtid      *regexp.Regexp // in the binlog's event of the type Gtid
	statement string         // the type of the event with the text of a statement
}

func wordsOf(isMySQL bool) pairWords {
	if isMySQL {
		return mysqlWords
	}
	return mariadbWords
}

// https://mariadb.com/kb/en/gtid and https://mariadb.com/kb/en/semisynchronous-replication
var mariadbWords = pairWords{
	binlog: []string{"--gtid-strict-mode=1", "--log-slave-updates=1"},
	waits: func(patience time.Duration) []string {
		return []string{"--rpl-semi-sync-master-enabled=1", "--rpl-semi-sync-master-wait-point=AFTER_SYNC",
			"--rpl-semi-sync-master-timeout=" + strconv.FormatInt(patience.Milliseconds(), 10)}
	},
	acknowledges: []string{"--rpl-semi-sync-slave-enabled=1"},
	readOnly:     func(value string) string { return "SET GLOBAL read_only=" + value },
	follow: "CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%s, MASTER_USER='%s', MASTER_PASSWORD='%s', MASTER_USE_GTID=slave_pos, " +
		"MASTER_CONNECT_RETRY=1, MASTER_HEARTBEAT_PERIOD=1",
	start: "START SLAVE", stop: "STOP SLAVE", forget: "RESET SLAVE ALL",
	stopReceiving: "STOP SLAVE IO_THREAD", stopApplying: "STOP SLAVE SQL_THREAD", startApplying: "START SLAVE SQL_THREAD",
	status: "SHOW SLAVE STATUS", receiving: "Slave_IO_Running", applying: "Slave_SQL_Running", received: "Gtid_IO_Pos",
	applied: "@@gtid_slave_pos", committed: "@@gtid_binlog_pos",
	clients: "Rpl_semi_sync_master_clients", waiting: "Rpl_semi_sync_master_wait_sessions", semiSync: "Rpl_semi_sync_master_status",
	committing: "'Waiting for semi-sync ACK from slave', 'Commit'",
	// It returns -1 where one is missing after so many seconds.
	includes: "MASTER_GTID_WAIT('%s', 0) = 0",
	gtid:     regexp.MustCompile(`\d+-\d+-\d+`), statement: "Annotate_rows",
}

// https://dev.mysql.com/doc/refman/8.4/en/replication-gtids.html and replication-semisync.html
var mysqlWords = pairWords{
	binlog: []string{"--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--binlog-rows-query-log-events=ON"},
	waits: func(patience time.Duration) []string {
		return []string{"--plugin-load-add=semisync_source.so", "--loose-rpl-semi-sync-source-enabled=1",
			"--loose-rpl-semi-sync-source-wait-point=AFTER_SYNC", "--loose-rpl-semi-sync-source-timeout=" + strconv.FormatInt(patience.Milliseconds(), 10)}
	},
	acknowledges: []string{"--plugin-load-add=semisync_replica.so", "--loose-rpl-semi-sync-replica-enabled=1"},
	readOnly:     func(value string) string { return "SET GLOBAL super_read_only=" + value + ", read_only=" + value },
	follow: "CHANGE REPLICATION SOURCE TO SOURCE_HOST='%s', SOURCE_PORT=%s, SOURCE_USER='%s', SOURCE_PASSWORD='%s', SOURCE_AUTO_POSITION=1, " +
		"GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1, SOURCE_HEARTBEAT_PERIOD=1",
	start: "START REPLICA", stop: "STOP REPLICA", forget: "RESET REPLICA ALL",
	stopReceiving: "STOP REPLICA IO_THREAD", stopApplying: "STOP REPLICA SQL_THREAD", startApplying: "START REPLICA SQL_THREAD",
	status: "SHOW REPLICA STATUS", receiving: "Replica_IO_Running", applying: "Replica_SQL_Running", received: "Retrieved_Gtid_Set",
	applied: "@@global.gtid_executed", committed: "@@global.gtid_executed",
	clients: "Rpl_semi_sync_source_clients", waiting: "Rpl_semi_sync_source_wait_sessions", semiSync: "Rpl_semi_sync_source_status",
	committing: "'Waiting for semi-sync ACK from replica', 'waiting for handler commit'",
	includes:   "GTID_SUBSET('%s', @@global.gtid_executed)",
	gtid:       regexp.MustCompile(`[0-9a-f-]{36}:\d+`), statement: "Rows_query",
}
