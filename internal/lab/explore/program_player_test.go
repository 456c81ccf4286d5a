package explore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/schedule"
	look "stocklock/internal/lab/seen"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/redisconn"
)

// programServers plays one order at a time, on tables and connections of its own.
type programServers struct {
	db     *sql.DB
	conns  []*sql.Conn
	ids    []uint64
	redis  redisconn.Client
	names  *strings.Replacer // of the tables
	schema schedule.Schema
	run    int64
	sha    string
}

func newProgramServers(t *testing.T, dsn string, client redisconn.Client, worker int) *programServers {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s := &programServers{db: db, redis: client, names: strings.NewReplacer(" a ", fmt.Sprintf(" a%d ", worker), " b ", fmt.Sprintf(" b%d ", worker), " c ", fmt.Sprintf(" c%d ", worker)), run: int64(worker+1) * 10_000_000}
	for _, create := range []string{
		"CREATE TABLE a (id BIGINT PRIMARY KEY, grp BIGINT NOT NULL, v BIGINT NOT NULL, KEY (grp))",
		"CREATE TABLE b (id BIGINT AUTO_INCREMENT PRIMARY KEY, a_id BIGINT NOT NULL, u BIGINT NULL UNIQUE, v BIGINT NOT NULL DEFAULT 0, FOREIGN KEY (a_id) REFERENCES a (id))",
		"CREATE TABLE c (id BIGINT PRIMARY KEY)",
	} {
		if _, err := db.ExecContext(t.Context(), s.names.Replace(create)); err != nil {
			t.Fatal(err)
		}
	}
	if s.schema, err = schedule.LoadSchema(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	for range schedule.MaxCustomers {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		var id uint64
		if err := conn.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&id); err != nil {
			t.Fatal(err)
		}
		s.conns, s.ids = append(s.conns, conn), append(s.ids, id)
	}
	if s.sha, err = client.Do(t.Context(), "SCRIPT", "LOAD", script).Text(); err != nil {
		t.Fatal(err)
	}
	return s
}

// programRun is one order of a program.
type programRun struct {
	*programServers
	customers []*programCustomer
}

// programCustomer is one customer of a program in one order.
type programCustomer struct {
	left      []string
	sent      int
	isolation string // of the transaction that is open, "-" for none
	begin     string // to be sent before the next step
	tx, named []schedule.Statement
	read      string
	answers   []string
	flying    chan programAnswer // nil for none
	waiting   bool
	request   schedule.Request // that is under way
}

type programAnswer struct {
	text string
	err  error
}

const noTransaction = "-"

// begin begins an order of a program on rows of its own.
func (s *programServers) begin(ctx context.Context, p program) (*programRun, error) {
	s.run += 10
	if _, err := s.db.ExecContext(ctx, s.names.Replace(fmt.Sprintf("INSERT INTO a (id, grp, v) VALUES (%d, %d, 1), (%d, %d, 2)", s.run+1, s.run, s.run+2, s.run))); err != nil {
		return nil, err
	}
	r := &programRun{programServers: s}
	for _, steps := range p {
		c := &programCustomer{left: steps, isolation: noTransaction, read: "1"}
		c.skip()
		r.customers = append(r.customers, c)
	}
	return r, nil
}

func (s *programRun) Next(context.Context) (next explore.Next, ended bool, err error) {
	next = explore.Next{Why: func(c schedule.Choice) error { return errors.New(c.String() + " cannot be") }}
	parties := s.parties()
	for i, c := range s.customers {
		if parties[i].AtStep {
			next.Options = append(next.Options, explore.Option{
				Choice:  schedule.Choice{Customer: schedule.Customer('A' + i), Step: fmt.Sprint("s", c.sent+1)},
				Touches: s.schema.StepTouches(i, parties), RowHeld: s.schema.IsHeld(i, parties),
			})
		}
	}
	return next, len(next.Options) == 0, nil
}

func (s *programRun) Pass(context.Context, explore.Next) error {
	return errors.New("nobody can go on")
}

func (s *programRun) Take(ctx context.Context, next explore.Next, i int) error {
	s.send(ctx, int(next.Options[i].Choice.Customer-'A'))
	if err := s.settle(ctx); err != nil {
		return fmt.Errorf("after %s: %w", next.Past, err)
	}
	return nil
}

func (s *programRun) Record(ctx context.Context) (schedule.Record, error) {
	s.end()
	outcome, err := s.outcome(ctx)
	return schedule.Record{Outcome: schedule.Outcome{Verdict: verdict.Held, Cause: verdict.Cause(outcome)}}, err
}

func (s *programRun) parties() []schedule.Party {
	all := make([]schedule.Party, len(s.customers))
	for i, c := range s.customers {
		all[i] = schedule.Party{Next: locking(c.next(s.programServers)), AtStep: c.flying == nil && len(c.left) > 0, Waiting: c.waiting, Held: slices.Concat(c.tx, c.named)}
	}
	return all
}

// skip takes in what is no step.
func (c *programCustomer) skip() {
	for len(c.left) > 0 && strings.HasPrefix(c.left[0], "BEGIN") {
		c.begin, c.left = c.left[0], c.left[1:]
		c.isolation = levels[strings.TrimPrefix(c.begin, "BEGIN")]
	}
}

// levels are the isolations that a step BEGIN can name, as database/sql calls them.
var levels = map[string]string{"": "Repeatable Read", " READ COMMITTED": "Read Committed", " SERIALIZABLE": "Serializable"}

// locking is a request as it locks.
func locking(r schedule.Request) schedule.Request {
	if r.Isolation == levels[" SERIALIZABLE"] {
		return r.Serializable()
	}
	return r
}

// next is the next request, or the one under way.
func (c *programCustomer) next(s *programServers) schedule.Request {
	if c.flying != nil {
		return c.request
	}
	if len(c.left) == 0 {
		return schedule.Request{Server: "mysql", Text: "ROLLBACK"}
	}
	text := strings.NewReplacer("$1", fmt.Sprint(s.run+1), "$2", fmt.Sprint(s.run+2), "$g", fmt.Sprint(s.run), "$u", fmt.Sprint(s.run), "$l", fmt.Sprint("l", s.run),
		"$k", fmt.Sprint("k", s.run), "$j", fmt.Sprint("j", s.run), "$v", c.read, "$s", s.sha).Replace(c.left[0])
	r := schedule.Request{Server: "redis", Text: text}
	if word, _, _ := strings.Cut(c.left[0], " "); !redisWords[word] {
		r = schedule.Request{Server: "mysql", Text: s.names.Replace(text), Tx: c.isolation != noTransaction, Earlier: c.tx}
		if r.Tx {
			r.Isolation = c.isolation
		}
	}
	return r
}

// send lets the next step of a customer go.
func (s *programRun) send(ctx context.Context, i int) {
	c := s.customers[i]
	c.request = c.next(s.programServers)
	c.left, c.sent = c.left[1:], c.sent+1
	begin := c.begin
	c.begin = ""
	c.flying = make(chan programAnswer, 1)
	go func(to chan<- programAnswer, r schedule.Request) {
		var a programAnswer
		if begin != "" {
			a.err = s.open(ctx, i, begin)
		}
		if a.err == nil {
			a.text, a.err = s.ask(ctx, i, r)
		}
		to <- a
	}(c.flying, c.request)
}

func (s *programRun) open(ctx context.Context, i int, how string) error {
	statement := "START TRANSACTION"
	if level := strings.TrimPrefix(how, "BEGIN"); level != "" {
		statement = "SET TRANSACTION ISOLATION LEVEL" + level + "; START TRANSACTION"
	}
	_, err := s.conns[i].ExecContext(ctx, statement)
	return err
}

func (s *programRun) ask(ctx context.Context, i int, r schedule.Request) (string, error) {
	if r.Server == "redis" {
		var args []any
		for _, word := range strings.Fields(r.Text) {
			args = append(args, word)
		}
		answer := s.redis.Do(ctx, args...)
		return fmt.Sprint(answer.Value), answer.Err
	}
	if !strings.HasPrefix(r.Text, "SELECT") {
		done, err := s.conns[i].ExecContext(ctx, r.Text)
		if err != nil {
			return "", err
		}
		n, err := done.RowsAffected()
		return fmt.Sprint(n, " rows"), err
	}
	rows, err := s.conns[i].QueryContext(ctx, r.Text)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	answer := "no row"
	for rows.Next() {
		var value sql.NullString
		if err := rows.Scan(&value); err != nil {
			return "", err
		}
		answer = value.String
	}
	return answer, rows.Err()
}

// settle waits until each request under way is answered, or seen to wait.
func (s *programRun) settle(ctx context.Context) error {
	for range 3 { // an answer can be that of a victim, or let another one go on
		again := false
		for i, c := range s.customers {
			if c.flying == nil {
				continue
			}
			before := c.waiting
			if err := s.await(ctx, i, c); err != nil {
				return err
			}
			again = again || c.flying == nil || c.waiting != before
		}
		if !again {
			break
		}
	}
	for i, c := range s.customers {
		if c.waiting && s.schema.MayWaitFor(i, s.parties()) < 0 {
			return fmt.Errorf("%s waits, and no statement explains that", c.request.Text)
		}
	}
	return nil
}

func (s *programRun) await(ctx context.Context, i int, c *programCustomer) error {
	for begun := time.Now(); time.Since(begun) < 30*time.Second; {
		select {
		case a := <-c.flying:
			return c.answered(a, s.schema)
		case <-time.After(2 * time.Millisecond):
		}
		if s.schema.MayWaitFor(i, s.parties()) < 0 && time.Since(begun) < 100*time.Millisecond {
			continue // it is slow rather than that no rule explains what it waits for
		}
		waits, err := look.ConnWaits(ctx, s.db, s.ids[i])
		if c.waiting = waits; waits || err != nil {
			return err
		}
	}
	return errors.New("neither an answer nor a lock that is waited for")
}

// answered takes in an answer. Who was chosen as the victim of a deadlock sends no more.
func (c *programCustomer) answered(a programAnswer, schema schedule.Schema) error {
	c.flying, c.waiting = nil, false
	var fromMySQL *mysql.MySQLError
	switch {
	case errors.As(a.err, &fromMySQL):
		a.text = fmt.Sprint("error ", fromMySQL.Number)
	case a.err != nil:
		return a.err
	}
	c.answers = append(c.answers, a.text)
	statement := schedule.Statement{Text: locking(c.request).Text, Matched: a.err == nil && a.text != "no row" && a.text != "0 rows"}
	named := strings.Contains(c.request.Text, "_LOCK(")
	switch {
	case c.request.Server == "redis":
	case fromMySQL != nil && fromMySQL.Number == 1213:
		c.left, c.tx, c.isolation = nil, nil, noTransaction
		return nil
	case c.request.Text == "COMMIT" || c.request.Text == "ROLLBACK":
		c.tx, c.isolation = nil, noTransaction
	case strings.Contains(c.request.Text, "GET_LOCK(") && a.text == "1":
		c.named = append(c.named, statement)
	case strings.Contains(c.request.Text, "RELEASE"):
		c.named = c.named[:max(0, len(c.named)-1)] // the server counts
	case c.request.Tx && !named:
		c.tx = append(c.tx, statement)
	}
	if strings.HasPrefix(c.request.Text, "SELECT v") || strings.HasPrefix(c.request.Text, "GET ") {
		c.read = "0"
		if n, err := strconv.Atoi(a.text); err == nil {
			c.read = fmt.Sprint(n)
		}
	}
	c.skip()
	return nil
}

// end frees all that customers hold.
func (s *programRun) end() {
	for i, c := range s.customers {
		if c.flying == nil {
			_, _ = s.conns[i].ExecContext(context.Background(), "ROLLBACK; DO RELEASE_ALL_LOCKS()")
		}
	}
	var waiting []*programCustomer // they go on when another one has ended
	for _, c := range s.customers {
		if c.flying == nil {
			continue
		}
		select {
		case a := <-c.flying:
			_ = c.answered(a, s.schema)
		case <-time.After(10 * time.Millisecond):
		}
		waiting = append(waiting, c)
	}
	if len(waiting) > 0 {
		s.end()
	}
}

// outcome is what customers were answered, and what the servers have in the end. Rows are in the order of
// their ids, which differ in each order.
func (s *programRun) outcome(ctx context.Context) (string, error) {
	var all []string
	for _, c := range s.customers {
		all = append(all, strings.Join(c.answers, ","))
	}
	rows, err := s.db.QueryContext(ctx, s.names.Replace(fmt.Sprintf("(SELECT 'a', id - %[1]d, v FROM a WHERE grp = %[1]d ORDER BY id) UNION ALL "+
		"(SELECT 'b', a_id - %[1]d, v FROM b WHERE a_id BETWEEN %[1]d AND %[1]d + 9 ORDER BY id LIMIT 99) UNION ALL (SELECT 'c', id - %[1]d, 0 FROM c WHERE id = %[1]d + 1)", s.run)))
	if err != nil {
		return "", err
	}
	defer rows.Close()
	for rows.Next() {
		var table string
		var id, v int64
		if err := rows.Scan(&table, &id, &v); err != nil {
			return "", err
		}
		all = append(all, fmt.Sprint(table, id, "=", v))
	}
	for _, key := range []string{"k", "j"} {
		value := s.redis.Do(ctx, "GET", fmt.Sprint(key, s.run))
		if value.Err != nil {
			return "", value.Err
		}
		all = append(all, fmt.Sprint(key, "=", value.Value))
	}
	return strings.Join(all, " / "), rows.Err()
}
