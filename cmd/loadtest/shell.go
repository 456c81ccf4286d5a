package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/go-sql-driver/mysql"

	"stocklock/internal/testserver"
)

// shell starts private servers, which end with the shell in it.
func (c *exerciseCommand) shell(ctx context.Context, s streams) (err error) {
	group, err := testserver.New()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, group.Close()) }()
	group.RedisProgram = string(c.RedisServer)
	redis, err := group.Redis(ctx, testserver.RedisOptions{})
	if err != nil {
		return err
	}
	database, err := group.MySQL(ctx)
	if err != nil {
		return err
	}
	folder, err := group.Folder("clients")
	if err != nil {
		return err
	}
	if err := writeClients(folder, redis.Addr, database.DSN()); err != nil {
		return err
	}
	fmt.Fprintf(s.err, "redis-cli and mysql reach the servers here. First, where your shell sets its own PATH, and in each other terminal: export PATH=%s:$PATH\nexit, or Ctrl-D, ends the servers.\n", folder)
	shell := exec.CommandContext(ctx, cmp.Or(os.Getenv("SHELL"), "/bin/sh"))
	shell.Stdin, shell.Stdout, shell.Stderr = os.Stdin, s.out, s.err
	shell.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
	err = shell.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return nil // what the last command in it came to
	}
	return err
}

// writeClients puts a redis-cli and a mysql into a folder that reach two servers.
func writeClients(folder, redisAddr, dsn string) error {
	of, err := mysql.ParseDSN(dsn)
	if err != nil {
		return err
	}
	redisHost, redisPort, err := net.SplitHostPort(redisAddr)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(of.Addr)
	if err != nil {
		return err
	}
	secret := filepath.Join(folder, "client.cnf") // no program's list of arguments shows the password
	if err := os.WriteFile(secret, fmt.Appendf(nil, "[client]\nhost=%s\nport=%s\nuser=%s\npassword=%s\nprotocol=tcp\n", host, port, of.User, of.Passwd), 0o600); err != nil {
		return err
	}
	for name, command := range map[string]string{
		"redis-cli": fmt.Sprintf("$(command -v redis-cli || echo valkey-cli) -h %s -p %s", redisHost, redisPort),
		"mysql":     fmt.Sprintf("mysql --defaults-file=%s %s", quoted(secret), of.DBName),
	} {
		// The folder itself is in the PATH before the real program.
		script := fmt.Sprintf("#!/bin/sh\nPATH=${PATH#%s:}\nexec %s \"$@\"\n", quoted(folder), command)
		if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o755); err != nil {
			return err
		}
	}
	return nil
}
