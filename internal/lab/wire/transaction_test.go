package wire

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"

	"stocklock/internal/testserver"
)

// TestWhatEndsATransaction: what is seen of a connection's statements, with what each has ended and left open. A
// reset of the connection is a statement, too.
func TestWhatEndsATransaction(t *testing.T) {
	var raw net.Conn // of the connection that was opened last
	mysqldriver.RegisterDialContext("raw", func(ctx context.Context, addr string) (c net.Conn, err error) {
		raw, err = (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		return raw, err
	})
	cfg, err := mysqldriver.ParseDSN(testserver.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	seen := &tap{said: func(x *Exchange) string {
		return fmt.Sprint(x.Text, map[bool]string{true: " ends"}[x.Ends], map[bool]string{true: " open"}[x.Open])
	}}
	p := listen(t, MySQL, cfg.Addr, seen)
	cfg.Net, cfg.Addr, cfg.MultiStatements = "raw", p.Addr, true
	db, err := sql.Open("mysql", cfg.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE other (id INT PRIMARY KEY, n INT) ENGINE=InnoDB; INSERT INTO other VALUES (1, 1)"); err != nil {
		t.Fatal(err)
	}
	const update = "UPDATE other SET n = n + 1"
	for _, tt := range []struct {
		name       string
		sent, want []string
	}{
		{"a second BEGIN", []string{"BEGIN", update, "BEGIN WORK", "ROLLBACK"}, []string{update + " open", "BEGIN WORK ends open", "ROLLBACK ends"}},
		{"START TRANSACTION", []string{"START TRANSACTION READ WRITE", update, "START TRANSACTION", "ROLLBACK"}, []string{update + " open", "START TRANSACTION ends open", "ROLLBACK ends"}},
		{"DDL", []string{"BEGIN", update, "ALTER TABLE other COMMENT 'x'"}, []string{update + " open", "ALTER TABLE other COMMENT 'x' ends"}},
		{"DDL that fails", []string{"BEGIN", update, "ALTER TABLE no COMMENT 'x'"}, []string{update + " open", "ALTER TABLE no COMMENT 'x' ends"}},
		{"LOCK TABLES", []string{"BEGIN", update, "LOCK TABLES other WRITE", "UNLOCK TABLES"}, []string{update + " open", "LOCK TABLES other WRITE ends", "UNLOCK TABLES"}},
		{"autocommit", []string{"SET autocommit=0", update, "SET autocommit=1", "SET autocommit=1"}, []string{update + " open", "SET autocommit=1 ends"}},
		{"autocommit was on", []string{"BEGIN", update, "SET autocommit=1", "ROLLBACK"}, []string{update + " open", "ROLLBACK ends"}},
		{"a chain", []string{"BEGIN", update, "COMMIT AND CHAIN", "ROLLBACK"}, []string{update + " open", "COMMIT AND CHAIN ends open", "ROLLBACK ends"}},
		{"comments around", []string{"BEGIN /*application='Shop'*/", "/* a */ " + update + " /* b */;", "COMMIT /*controller='orders'*/"}, []string{update + " open", "COMMIT ends"}},
		{"XA", []string{"XA START 'a'", update, "XA END 'a'", "XA PREPARE 'a'", "XA COMMIT 'a'"}, []string{"XA START 'a' open", update + " open", "XA END 'a' open", "XA PREPARE 'a' open", "XA COMMIT 'a' ends"}},
		{"an error", []string{"BEGIN", update, "SELECT no", "ROLLBACK"}, []string{update + " open", "SELECT no open", "ROLLBACK ends"}},
		{"a savepoint", []string{"BEGIN", "SAVEPOINT a", update, "ROLLBACK TO SAVEPOINT a", "ROLLBACK"}, []string{update + " open", "ROLLBACK TO SAVEPOINT a open", "ROLLBACK ends"}},
		{"several in one", []string{"BEGIN; " + update + "; COMMIT", "BEGIN", update + "; COMMIT; BEGIN; " + update, "ROLLBACK"},
			[]string{"BEGIN; " + update + "; COMMIT", update + "; COMMIT; BEGIN; " + update + " ends open", "ROLLBACK ends"}},
		{"a SELECT in a SET", []string{"SET @n = (SELECT n FROM other)", "SET STATEMENT max_statement_time=9 FOR " + update, "SET NAMES utf8mb4", "SET sql_mode=CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES')"},
			[]string{"SET @n = (SELECT n FROM other)", "SET STATEMENT max_statement_time=9 FOR " + update}},
		{"a reset", []string{"BEGIN", update, "", "SET autocommit=1"}, []string{update + " open", "RESET CONNECTION ends"}},
		{"a reset of a named lock", []string{"DO GET_LOCK('a', 1)", "", ""}, []string{"DO GET_LOCK('a', 1)", "RESET CONNECTION"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			seen.take()
			for _, statement := range tt.sent {
				if statement == "" {
					_, err = raw.Write([]byte{1, 0, 0, 0, 0x1f})
					if _, read := io.ReadFull(raw, make([]byte, 11)); err == nil {
						err = read
					}
				} else {
					_, err = conn.ExecContext(t.Context(), statement)
				}
				if (err != nil) != strings.Contains(statement, " no") {
					t.Errorf("%s: %v", statement, err)
				}
			}
			if got := seen.take(); !slices.Equal(got, tt.want) {
				t.Errorf("seen:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

func TestCommentsAroundAStatement(t *testing.T) {
	for text, want := range map[string]string{
		"-- name: Get :one\nSELECT 1": "SELECT 1", "# a\n/* b */ COMMIT ;": "COMMIT", "COMMIT/**/": "COMMIT", "/**/ COMMIT": "COMMIT", "/*M*/ SELECT 1 /* b */ + 1": "SELECT 1 /* b */ + 1",
		"SELECT 1 /* a * b ** */":                         "SELECT 1",
		"SELECT '/* a' /* b */":                           "SELECT '/* a'",
		"SELECT 1 /* a /* b */":                           "SELECT 1 /* a /* b */",
		"SELECT '/* a */'":                                "SELECT '/* a */'",
		"SELECT '/* a', 'b */":                            "SELECT '/* a', 'b */",
		"SELECT /*+ NO_ICP(t) */ a FROM t":                "SELECT /*+ NO_ICP(t) */ a FROM t",
		"/*!40101 SET NAMES utf8mb4 */;":                  "SET NAMES utf8mb4",
		"/*M!100100 SET NAMES utf8mb4 */":                 "SET NAMES utf8mb4",
		"DELETE FROM t WHERE id = 1 /*!50000 OR id = 2*/": "DELETE FROM t WHERE id = 1 /*!50000 OR id = 2*/",
		"/* only */":                                      "/* only */",
	} {
		if got := uncommented(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
