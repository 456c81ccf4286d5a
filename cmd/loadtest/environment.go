package main

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/lab/report"
	"stocklock/internal/stock"
)

// libraries are the modules whose versions can change the numbers.
var libraries = []string{
	"github.com/gin-gonic/gin", "gorm.io/gorm", "gorm.io/driver/mysql", "github.com/go-sql-driver/mysql",
	"github.com/redis/go-redis/v9", "github.com/tsenart/vegeta/v12",
}

func (l *lab) environment(args []string) report.Environment {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	shops := l.Shops
	if len(l.Shop) > 0 {
		shops = len(l.Shop)
	}
	e := report.Environment{
		Time: time.Now().UTC().Format(time.RFC3339), Command: commandLine(args), Seed: l.Seed,
		OS: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version(),
		MySQL: "MySQL " + l.mysql, Redis: l.server, Libraries: map[string]string{},
		Shops: shops, Testbeds: len(l.benches), Workers: l.Workers, Rate: l.options.Shape.String(),
		LeaseMS: ms(l.Lease), WaitMS: ms(l.Wait), RetryMS: ms(l.Retry), WorkMS: ms(l.Work),
		PoolMySQL: stock.PoolSize, ServersGiven: l.rig == nil,
	}
	if strings.Contains(l.mysql, "MariaDB") {
		e.MySQL = l.mysql
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		versions := map[string]string{}
		for _, m := range info.Deps {
			versions[m.Path] = m.Version
		}
		for _, path := range libraries {
			if v, ok := versions[path]; ok {
				e.Libraries[path] = v
			}
		}
	}
	return e
}

// commandLine is how the program was called, for a shell, without the passwords in addresses.
func commandLine(args []string) string {
	words := []string{"loadtest"}
	of := "" // the flag whose value comes next
	for _, a := range args {
		name, value, joined := strings.Cut(a, "=")
		switch {
		case of != "":
			a, of = withoutSecret(of, a), ""
		case name == "--mysql" || name == "--redis" || name == "--shop":
			if of = name; joined {
				a, of = name+"="+withoutSecret(name, value), ""
			}
		}
		words = append(words, quoted(a))
	}
	return strings.Join(words, " ")
}

func withoutSecret(flag, value string) string {
	if flag == "--shop" {
		return withoutPassword(value)
	}
	return "***"
}

// withoutPassword is an address that may be shown.
func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "***"
	}
	return u.Redacted()
}

var plainWord = regexp.MustCompile(`^[\w./:=,@%+*-]+$`)

// quoted is a word as a shell reads it.
func quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// redisVersion is what the server calls itself, such as "Redis 8.0.2".
func redisVersion(ctx context.Context, client *redis.Client) (string, error) {
	info, err := client.InfoMap(ctx, "server").Result()
	if err != nil {
		return "", fmt.Errorf("ask Redis for its version: %w", err)
	}
	if v := info["Server"]["valkey_version"]; v != "" {
		return "Valkey " + v, nil
	}
	return "Redis " + info["Server"]["redis_version"], nil
}
