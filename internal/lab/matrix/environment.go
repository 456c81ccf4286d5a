package matrix

import (
	"context"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/report"
	"stocklock/internal/lab/rig"
	"stocklock/internal/stock"
)

// libraries are the modules whose versions can change the numbers.
var libraries = []string{
	"github.com/gin-gonic/gin", "gorm.io/gorm", "gorm.io/driver/mysql", "github.com/go-sql-driver/mysql",
	"github.com/redis/go-redis/v9", "github.com/tsenart/vegeta/v12",
}

// environment is everything that may change the numbers.
func (t *testbeds) environment() report.Environment {
	p := t.plan
	e := report.Environment{
		Time: time.Now().UTC().Format(time.RFC3339), Seed: p.Seed,
		OS: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version(),
		MySQL: t.mysqlVersion, Redis: t.redisVersion, Etcd: t.etcdVersion, Libraries: map[string]string{},
		Shops: p.shops(), Testbeds: max(len(t.benches), 1), Workers: p.Workers, Rate: p.Shape.String(),
		Conditions: p.conditions(), PoolMySQL: stock.PoolSize,
	}
	if len(p.MySQLSet) > 0 {
		e.MySQL += " with " + strings.Join(p.MySQLSet, ", ")
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if slices.Contains(libraries, m.Path) {
				e.Libraries[m.Path] = m.Version
			}
		}
	}
	return e
}

func (t *testbeds) askVersions(ctx context.Context) (err error) {
	t.mysqlVersion = t.servers.Version
	if testbed := t.benches[0].Testbed; testbed != nil && testbed.Etcd != nil {
		if t.etcdVersion, err = testbed.Etcd.Version(ctx); err != nil {
			return err
		}
	}
	if client := t.benches[0].LocksIn(); client != nil {
		t.redisVersion, err = rig.RedisVersion(ctx, client)
	}
	return err
}
