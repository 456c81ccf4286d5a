package program

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"stocklock/internal/shop"
	"stocklock/internal/strategy"
)

const defaultStrategy = "fenced-relative"

// settings are all settings of a shop. Their ranges are checked by package flags.
type settings struct {
	Addr         string `env:"SHOP_ADDR" default:"127.0.0.1:8080" help:"Where to listen, host:port. Port 0 takes a free one."`
	InternalAddr string `env:"SHOP_INTERNAL_ADDR" placeholder:"HOST:PORT" help:"Where operators find /metrics, /debug/pprof and probes. Without it nowhere. Keep it on a network of your own."`
	MySQL        string `name:"mysql" env:"SHOP_MYSQL" placeholder:"DSN" help:"Where MySQL or MariaDB is: user:password@tcp(host:3306)/database. Required."`
	MySQLFile    string `name:"mysql-file" env:"SHOP_MYSQL_FILE" placeholder:"PATH" help:"A file with what --mysql is, such as a mounted secret."`
	Name         string `env:"SHOP_NAME" help:"The name of this process in its orders, 1 to 64 printable ASCII characters without space. Without it host-pid."`

	Migrate bool `env:"SHOP_MIGRATE" default:"true" negatable:"" help:"Bring the schema up to date at the start. Without it the shop waits until shop migrate has done so: its user then needs no right to change the schema."`

	Strategy string        `env:"SHOP_STRATEGY" default:"${strategy}" help:"How sales are protected: ${strategies}."`
	Wait     time.Duration `env:"SHOP_WAIT" default:"5s" min:"1ms" max:"1m" help:"How long a sale waits for its lock before it is rejected as busy. Without a lock, how long it waits for a connection to MySQL, and repeats what lost against another transaction."`
	Retry    time.Duration `env:"SHOP_RETRY" default:"10ms" min:"1ms" max:"10s" help:"Pause between two tries where the database chose another transaction, and of locks that poll."`

	SubjectHeader string        `env:"SHOP_SUBJECT_HEADER" placeholder:"NAME" help:"The header in which a gateway names the customer. Idempotency keys are then each customer's own. The gateway must remove it from what comes from outside. Sales, and looks at orders and keys, are refused without it."`
	Anonymous     bool          `env:"SHOP_ANONYMOUS" help:"Serve requests without the subject header, too. Their orders are nobody's: in no list, and read by everybody who knows the id."`
	KeyTTL        time.Duration `env:"SHOP_KEY_TTL" default:"24h" min:"1m" max:"8760h" help:"How long an idempotency key is kept. A later repeat sells again."`
	Limit         int64         `env:"SHOP_LIMIT" default:"0" min:"0" max:"10000" help:"How many units of one item a customer may have in all orders that stand; 0 for any number. Orders without a customer are then refused: --subject-header is needed, too."`
	CancelWithin  time.Duration `env:"SHOP_CANCEL_WITHIN" default:"0s" min:"0s" max:"8760h" help:"For how long after an order its customer may cancel it, by the clock of the database. 0s lets only the staff cancel. It needs --subject-header, and the rights of the staff's shops in MySQL."`
	StaffAddr     string        `env:"SHOP_STAFF_ADDR" placeholder:"HOST:PORT" help:"Where the staff changes items, cancels orders, and the backend confirms payments of reservations. Without it nowhere. It needs a gateway of its own, which sets --staff-subject-header."`
	StaffHeader   string        `name:"staff-subject-header" env:"SHOP_STAFF_SUBJECT_HEADER" placeholder:"NAME" help:"The header in which the staff's gateway names who asks, for the audit."`

	reservationSettings

	MySQLPool int `name:"mysql-pool" env:"SHOP_MYSQL_POOL" default:"50" min:"1" max:"1000" help:"How many connections to MySQL this process opens at most. Idle ones are closed after 45 s. Probes take one more, and a migration three. The sum over all shops must stay below max_connections."`

	MaxInFlight    int64         `env:"SHOP_MAX_IN_FLIGHT" default:"1000" min:"1" help:"How many API requests may be under way. More are rejected as busy."`
	MaxConnections int64         `env:"SHOP_MAX_CONNECTIONS" default:"4000" min:"1" help:"How many connections may be open on --addr, and on --staff-addr. One more replaces the one that was idle for longest, or else was sending its request for longest, or is closed at once. A few more are for probes. The internal listener has no such bound."`
	StartupTimeout time.Duration `env:"SHOP_STARTUP_TIMEOUT" default:"30s" min:"1s" max:"1h" help:"How long to wait for MySQL and Redis at the start."`
	DrainDelay     time.Duration `env:"SHOP_DRAIN_DELAY" default:"5s" min:"0s" max:"10m" help:"How long to go on selling after SIGTERM, while readiness is off: longer than a load balancer needs to notice."`
	DrainTimeout   time.Duration `env:"SHOP_DRAIN_TIMEOUT" default:"10s" min:"0s" max:"10m" help:"How long sales under way may then take to finish."`
	LogLevel       string        `env:"SHOP_LOG_LEVEL" enum:"debug,info,warn,error" default:"info" help:"debug, which has the access log, info, warn or error."`

	lockSettings
	labSettings
}

var errNoMySQL = usage("SHOP_MYSQL is not set: want user:password@tcp(host:3306)/database")

// check finds settings that cannot be, where [shop.New] does not, and fills in what is computed.
func (s *settings) check() error {
	if err := s.readMySQL(); err != nil {
		return err
	}
	if s.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("the host has no name: %w: set --name (SHOP_NAME)", err)
		}
		s.Name = fmt.Sprintf("%.50s-%d", host, os.Getpid())
	}
	for name, addr := range map[string]string{"--internal-addr (SHOP_INTERNAL_ADDR)": s.InternalAddr, "--staff-addr (SHOP_STAFF_ADDR)": s.StaffAddr} {
		if addr == "" {
			continue
		}
		if _, _, err := splitAddr(name, addr); err != nil {
			return err
		}
	}
	if was := os.Getenv("SHOP_STAFF"); was != "" && was != "false" {
		return usage("SHOP_STAFF is no more: the staff has a listener of its own, --staff-addr (SHOP_STAFF_ADDR)")
	}
	if s.StaffAddr != "" && s.StaffHeader == "" {
		return usage("--staff-addr (SHOP_STAFF_ADDR) needs --staff-subject-header (SHOP_STAFF_SUBJECT_HEADER)")
	}
	if _, _, err := splitAddr("--addr (SHOP_ADDR)", s.Addr); err != nil {
		return err
	}
	if s.StaffAddr != "" {
		if err := s.labSettings.check(s.StaffAddr); err != nil {
			return err
		}
	}
	return s.labSettings.check(s.Addr)
}

// readMySQL reads where MySQL is. Without it, there is nothing to do.
func (s *settings) readMySQL() error {
	if err := readSecret("--mysql-file (SHOP_MYSQL_FILE)", s.MySQLFile, &s.MySQL); err != nil {
		return err
	}
	if s.MySQL == "" {
		return errNoMySQL
	}
	return nil
}

// readSecret reads a value that is in a file of its own, if a path is set.
func readSecret(setting, path string, value *string) error {
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return usage("%s cannot be read: %w", setting, err)
	}
	*value = strings.TrimSpace(string(text))
	return nil
}

// splitAddr finds what is wrong with an address before it is used.
func splitAddr(name, addr string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return "", "", usage("%s is %q: want host:port with a port up to 65535, such as 127.0.0.1:8080", name, addr)
	}
	return host, port, nil
}

// subject is where another way to verify customers goes, or staff: see SECURITY.md.
func subject(header string) func(*http.Request) (string, error) {
	if header == "" {
		return nil
	}
	return shop.SubjectHeader(header)
}

func (s *settings) options() strategy.Options {
	return strategy.Options{Wait: s.Wait, Retry: s.Retry}
}
