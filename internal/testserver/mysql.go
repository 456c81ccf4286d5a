package testserver

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
)

// MySQL is a private mysqld or mariadbd, with durable commits as a real server
// would have them, and small buffers.
type MySQL struct {
	*Process
	Addr     string // host:port
	isMySQL  bool   // and not MariaDB
	socket   string
	password string
	alone    []string // statements that keep those of prepare from servers that copy this one
}

const (
	mysqlUser     = "stocklock"
	mysqlDatabase = "stocklock"
)

// DSN is the address of the server's first database in go-sql-driver's form.
func (m *MySQL) DSN() string { return m.dsn(mysqlDatabase) }

func (m *MySQL) dsn(database string) string {
	cfg := mysqldriver.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net, cfg.Addr, cfg.DBName = mysqlUser, m.password, "tcp", m.Addr, database
	return cfg.FormatDSN()
}

// CreateDatabase adds an empty database and returns its DSN.
func (m *MySQL) CreateDatabase(ctx context.Context, name string) (string, error) {
	db, err := sql.Open("mysql", m.dsn(""))
	if err != nil {
		return "", err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE DATABASE `"+strings.ReplaceAll(name, "`", "")+"`"); err != nil {
		return "", fmt.Errorf("testserver: create database %s: %w", name, err)
	}
	return m.dsn(name), nil
}

// MySQL starts a server, with more of mysqld's own options, and waits until it answers. The first one
// on a machine takes seconds longer: it makes the template of the next ones.
func (g *Group) MySQL(ctx context.Context, options ...string) (*MySQL, error) {
	return g.mysql(ctx, &MySQL{password: RandomHex(12)}, nil, options...)
}

// mysql starts a server that has its password. With arrange, its data folder is changed first.
func (g *Group) mysql(ctx context.Context, server *MySQL, arrange func(data string) error, options ...string) (*MySQL, error) {
	program, err := findMySQL()
	if err != nil {
		return nil, err
	}
	dir, err := g.Folder("mysql")
	if err != nil {
		return nil, err
	}
	data, socket := filepath.Join(dir, "data"), filepath.Join(dir, "s")
	if err := g.dataFolder(ctx, program, dir, data); err != nil {
		return nil, err
	}
	if arrange != nil {
		if err := arrange(data); err != nil {
			return nil, err
		}
	}
	server.isMySQL, server.socket = isMySQL(program), socket
	err = g.WithPort(func(port int) error {
		server.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		args := []string{
			program, "--no-defaults", "--datadir=" + data, tmpdir(dir), "--socket=" + socket, "--pid-file=" + filepath.Join(dir, "pid"),
			"--bind-address=127.0.0.1", "--port=" + strconv.Itoa(port), "--skip-name-resolve", "--max-connections=1000",
			"--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=64M", "--skip-log-bin",
		}
		if server.isMySQL { // which says only in its performance schema who waits for a row
			args = append(args, "--mysqlx=OFF", "--secure-file-priv=NULL") // no folder for imports is needed, wherever the package has one
		} else {
			args = append(args, "--performance-schema=OFF")
		}
		args = append(args, options...)
		server.Process = &Process{Program: Program{
			Name: filepath.Base(program) + " " + server.Addr, Args: append(args, asRoot()...), Dir: dir,
			Ready: server.prepare,
		}}
		return g.Launch(ctx, server.Process)
	})
	return server, err
}

// mysqlEnv is the environment variable that says which server to start, such as
// /opt/mysql/bin/mysqld. Its file must be called mysqld or mariadbd.
const mysqlEnv = "TESTSERVER_MYSQL"

func findMySQL() (program string, err error) {
	if given := os.Getenv(mysqlEnv); given != "" {
		if program, err = find("the server of "+mysqlEnv, "want the path of a mysqld or mariadbd", given); err != nil {
			return "", err
		}
		return filepath.Abs(program) // it runs in another folder
	}
	return find("MySQL or MariaDB", "install one with: apt-get install mariadb-server, or: brew install mysql", "mariadbd", "mysqld")
}

// WithBinlog are the options of a server that writes a binlog and syncs it with each commit, as MySQL
// does by default.
var WithBinlog = []string{"--log-bin=binlog", "--sync-binlog=1", "--server-id=1"}

// Binlog stands for [WithBinlog] among [Settings].
const Binlog = "binlog"

// Settings are the options that give variables of a server other values, each written NAME=VALUE.
func Settings(variables []string) (options []string) {
	for _, v := range variables {
		if v == Binlog {
			options = append(options, WithBinlog...)
			continue
		}
		options = append(options, "--"+v)
	}
	return options
}

// initialise makes the system tables.
func (g *Group) initialise(ctx context.Context, program, dir, data string) error {
	args := []string{program, "--no-defaults", "--initialize-insecure", "--datadir=" + data, tmpdir(dir)}
	if !isMySQL(program) {
		const script = "mariadb-install-db" // one beside the program is of its version
		bin := filepath.Dir(program)
		install, err := find("MariaDB's "+script, "it comes with: apt-get install mariadb-server",
			filepath.Join(bin, script), filepath.Join(bin, "../scripts", script), script, "mysql_install_db")
		if err != nil {
			return err
		}
		args = []string{install, "--no-defaults", "--datadir=" + data, tmpdir(dir), "--auth-root-authentication-method=normal", "--skip-test-db",
			"--force", // even where the machine's own name does not resolve
			"--innodb-flush-log-at-trx-commit=0"}
	}
	args = append(args, asRoot()...)
	if err := g.Run(exec.CommandContext(ctx, args[0], args[1:]...)); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("testserver: initialise %s: %w", filepath.Base(program), err)
	}
	return nil
}

// tmpdir keeps temporary tables to this server: one that starts removes all that it finds in its
// folder, and /tmp is everybody's.
func tmpdir(dir string) string { return "--tmpdir=" + dir }

func isMySQL(program string) bool { return filepath.Base(program) == "mysqld" && !isMariaDB(program) }

// isMariaDB asks a mysqld, which on some systems is another name for mariadbd.
func isMariaDB(program string) bool {
	out, err := versionOf(context.Background(), program)
	return err == nil && strings.Contains(string(out), "MariaDB")
}

// asRoot allows what the servers refuse by default.
func asRoot() []string {
	if os.Getuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}

// prepare creates the user and the database, which is also the proof that the
// server works, and that it is ours and not another one on the same port.
//
// A server that was started again has both. Beside transactions, MySQL then waits for their locks on the schema, and
// they for its own, until a row was waited for too long.
func (m *MySQL) prepare(ctx context.Context) error {
	db, err := sql.Open("mysql", m.DSN())
	if err != nil {
		return err
	}
	defer db.Close()
	if db.PingContext(ctx) == nil {
		return m.asAdmin(ctx, m.alone...)
	}
	return m.asAdmin(ctx, append(slices.Clone(m.alone),
		"CREATE USER IF NOT EXISTS '"+mysqlUser+"'@'127.0.0.1' IDENTIFIED BY '"+m.password+"'",
		"GRANT ALL ON *.* TO '"+mysqlUser+"'@'127.0.0.1' WITH GRANT OPTION",
		"CREATE DATABASE IF NOT EXISTS "+mysqlDatabase)...)
}

// asAdmin carries out statements on one connection, up to the first that fails.
func (m *MySQL) asAdmin(ctx context.Context, statements ...string) error {
	db, err := m.admin()
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("testserver: %s: %s: %w", m.Name, statement, err)
		}
	}
	return nil
}

// admin opens the server as its administrator, who may do everything. The caller closes it.
func (m *MySQL) admin() (*sql.DB, error) {
	cfg := mysqldriver.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.Timeout = "root", "unix", m.socket, time.Second
	cfg.Logger = silent{}
	connector, err := mysqldriver.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

type silent struct{}

func (silent) Print(...any) {}
