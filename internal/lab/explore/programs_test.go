package explore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/stage"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/testserver"
)

// programsEnv is how many programs TestPruningLosesNoOutcomeOfPrograms plays: 5000 in `scripts/check.sh programs`.
const programsEnv = "EXPLORE_PROGRAMS"

// TestPruningLosesNoOutcomeOfPrograms makes small random programs of two or three customers, plays each on a real
// MySQL and Redis in every order, and wants the same outcomes of the orders that pruning leaves.
func TestPruningLosesNoOutcomeOfPrograms(t *testing.T) {
	programs := 120
	if given := os.Getenv(programsEnv); given != "" {
		var err error
		if programs, err = strconv.Atoi(given); err != nil {
			t.Fatal(err)
		}
	}
	g := testserver.Start(t)
	mysql, err := g.MySQL(t.Context(), "--innodb-flush-log-at-trx-commit=0")
	if err != nil {
		t.Fatal(err)
	}
	redis, err := g.Redis(t.Context(), testserver.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client := redis.Client()
	t.Cleanup(func() { client.Close() })
	const workers = 4
	var seed, pruned, all atomic.Int64
	var working sync.WaitGroup
	for w := range workers {
		on := newProgramServers(t, mysql.DSN()+"?clientFoundRows=true&interpolateParams=true&multiStatements=true", client, w)
		working.Go(func() {
			for {
				n := seed.Add(1)
				if n > int64(programs) || t.Failed() {
					return
				}
				p := randomProgram(rand.New(rand.NewPCG(uint64(n), 30)))
				if n <= int64(len(firstPrograms)) {
					p = firstPrograms[n-1]
				}
				a, b := on.compare(t, n, p)
				pruned.Add(a)
				all.Add(b)
				if n%250 == 0 {
					t.Logf("%d programs: %d orders of %d", n, pruned.Load(), all.Load())
				}
			}
		})
	}
	working.Wait()
	t.Logf("%d programs: %d orders of %d", programs, pruned.Load(), all.Load())
}

// program is what each customer sends, one after the other. A step BEGIN is sent with the step after it.
type program [][]string

func (p program) String() string {
	var customers []string
	for i, steps := range p {
		customers = append(customers, fmt.Sprintf("%s: %s", schedule.Customer('A'+i), strings.Join(steps, "; ")))
	}
	return strings.Join(customers, " | ")
}

// In a step, $1 and $2 are rows, $u is a unique key, $k and $j are keys, $l is a named lock, and $v is
// what the customer has read last.
var (
	sqlSteps = []string{
		"SELECT v FROM a WHERE id = $1", "SELECT v FROM a WHERE id = $1", "SELECT SUM(v) FROM a WHERE grp = $g", "SELECT COUNT(*) FROM b WHERE a_id = $1",
		"SELECT v FROM a WHERE id = $1 FOR UPDATE", "SELECT v FROM a WHERE id = $1 LOCK IN SHARE MODE", "SELECT COUNT(*) FROM b WHERE a_id = $1 FOR UPDATE",
		"SELECT v FROM a WHERE grp = $g AND v > 1 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
		"UPDATE a SET v = $v - 1 WHERE id = $1", "UPDATE a SET v = v * 2 WHERE id = $1", "UPDATE a SET v = v + 3 WHERE id = $2", "UPDATE a SET v = 0 WHERE id = $1 AND v = 1",
		"UPDATE a SET v = v + 10 WHERE grp = $g", "UPDATE a SET v = (SELECT COUNT(*) FROM b WHERE a_id = $1) WHERE id = $2",
		"INSERT INTO b (a_id, v) VALUES ($1, 5)", "INSERT INTO b (a_id, v) VALUES ($1, $v)", "INSERT INTO b (a_id, u) VALUES ($2, $u)",
		"DELETE FROM b WHERE a_id = $1", "UPDATE b SET v = v + 1 WHERE a_id = $1", "DELETE FROM c WHERE id = $1", "INSERT INTO c (id) VALUES ($1)", "SELECT COUNT(*) FROM c WHERE id = $1",
		"SELECT GET_LOCK('$l', 0)", "SELECT IS_FREE_LOCK('$l')", "DO RELEASE_LOCK('$l')",
	}
	redisSteps = []string{"GET $k", "GET $j", "SET $k $v NX", "SET $j 1", "INCR $k", "DEL $k", "EXISTS $k $j", "EVALSHA $s 2 $k $j", "EVALSHA $s 1 $k"}
)

var redisWords = map[string]bool{"GET": true, "SET": true, "INCR": true, "DEL": true, "EXISTS": true, "EVALSHA": true}

// firstPrograms are those that no chance leaves out: in each of them another rule decides.
var firstPrograms = []program{
	{{"BEGIN", "UPDATE a SET v = v * 2 WHERE id = $1", "UPDATE a SET v = v + 3 WHERE id = $2", "COMMIT"}, {"BEGIN", "UPDATE a SET v = v + 3 WHERE id = $2", "UPDATE a SET v = v * 2 WHERE id = $1", "COMMIT"}},
	{{"BEGIN", "SELECT v FROM a WHERE id = $1 LOCK IN SHARE MODE", "UPDATE a SET v = $v - 1 WHERE id = $1", "COMMIT"}, {"BEGIN", "SELECT v FROM a WHERE id = $1 LOCK IN SHARE MODE", "UPDATE a SET v = $v - 1 WHERE id = $1", "COMMIT"}},
	{{"BEGIN", "SELECT COUNT(*) FROM b WHERE a_id = $1 FOR UPDATE", "INSERT INTO b (a_id, v) VALUES ($1, 5)", "COMMIT"}, {"BEGIN", "SELECT COUNT(*) FROM b WHERE a_id = $1 FOR UPDATE", "INSERT INTO b (a_id, v) VALUES ($1, 5)", "COMMIT"}},
	{{"BEGIN", "SELECT COUNT(*) FROM c WHERE id = $1 LOCK IN SHARE MODE", "COMMIT"}, {"INSERT INTO c (id) VALUES ($1)", "GET $k"}},
	{{"BEGIN", "INSERT INTO b (a_id, v) VALUES ($1, 5)", "UPDATE a SET v = v * 2 WHERE id = $1", "COMMIT"}, {"BEGIN", "INSERT INTO b (a_id, v) VALUES ($1, $v)", "UPDATE a SET v = v + 3 WHERE id = $1", "COMMIT"}},
	{{"INSERT INTO b (a_id, v) VALUES ($1, 5)", "SELECT COUNT(*) FROM b WHERE a_id = $1"}, {"INSERT INTO b (a_id, v) VALUES ($1, 6)", "SELECT COUNT(*) FROM b WHERE a_id = $1"}},
	{{"BEGIN", "INSERT INTO b (a_id, v) VALUES ($1, 5)", "COMMIT"}, {"BEGIN", "INSERT INTO b (a_id, v) VALUES ($1, 6)", "ROLLBACK"}, {"BEGIN", "INSERT INTO b (a_id, v) VALUES ($1, 7)", "COMMIT"}},
	{{"BEGIN", "SELECT v FROM a WHERE id = $1 FOR UPDATE", "ROLLBACK"}, {"SELECT v FROM a WHERE grp = $g AND v > 0 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED", "GET $k"}},
	{{"SELECT GET_LOCK('$l', 0)", "DO RELEASE_LOCK('$l')"}, {"SELECT IS_FREE_LOCK('$l')", "SELECT GET_LOCK('$l', 0)"}},
	{{"SET $j 1", "GET $k"}, {"SET $j 2", "EXISTS $k"}},
	{{"EVALSHA $s 2 $k $j", "GET $k"}, {"INCR $j", "INCR $k"}},
	{{"BEGIN", "SELECT SUM(v) FROM a WHERE grp = $g", "SELECT COUNT(*) FROM b WHERE a_id = $1", "COMMIT"}, {"INSERT INTO b (a_id, v) VALUES ($1, 5)", "UPDATE a SET v = v + 3 WHERE id = $2"}},
	{{"BEGIN READ COMMITTED", "SELECT SUM(v) FROM a WHERE grp = $g", "SELECT COUNT(*) FROM b WHERE a_id = $1", "COMMIT"}, {"INSERT INTO b (a_id, v) VALUES ($1, 5)", "UPDATE a SET v = v + 3 WHERE id = $2"}},
	{{"UPDATE a SET v = (SELECT COUNT(*) FROM c WHERE id = $1) WHERE id = $2"}, {"INSERT INTO c (id) VALUES ($1)", "GET $k"}},
	{{"BEGIN", "INSERT INTO c (id) VALUES ($1)", "COMMIT"}, {"BEGIN", "SELECT COUNT(*) FROM c WHERE id = $1 FOR UPDATE", "COMMIT"}},
	{{"BEGIN", "INSERT INTO c (id) VALUES ($1)", "COMMIT"}, {"BEGIN", "SELECT COUNT(*) FROM c WHERE id = $1 LOCK IN SHARE MODE", "COMMIT"}},
}

// script moves what it finds in its first key to its last one, and counts there.
var script = redis.NewScript(`redis.call('INCRBY', KEYS[#KEYS], (tonumber(redis.call('GET', KEYS[1])) or 1) * 2) return redis.call('GET', KEYS[#KEYS])`)

func randomProgram(r *rand.Rand) program {
	customers, least, most := 2, 2, 4
	if r.IntN(5) == 0 {
		customers, least, most = 3, 1, 2
	}
	// Few different things make customers meet.
	some := make([]string, 3)
	for i := range some {
		some[i] = sqlSteps[r.IntN(len(sqlSteps))]
		if r.IntN(6) == 0 {
			some[i] = redisSteps[r.IntN(len(redisSteps))]
		}
	}
	p := make(program, customers)
	for i := range p {
		n := least + r.IntN(most-least+1)
		var steps []string
		for range n {
			switch r.IntN(10) {
			case 0:
				steps = append(steps, redisSteps[r.IntN(len(redisSteps))])
			case 1, 2:
				steps = append(steps, sqlSteps[r.IntN(len(sqlSteps))])
			default:
				steps = append(steps, some[r.IntN(len(some))])
			}
		}
		if r.IntN(3) > 0 { // a transaction around some of them
			from := r.IntN(len(steps))
			to := from + 1 + r.IntN(len(steps)-from)
			end := "COMMIT"
			if r.IntN(6) == 0 {
				end = "ROLLBACK"
			}
			begin := "BEGIN"
			if r.IntN(3) == 0 {
				begin = "BEGIN READ COMMITTED"
			}
			if len(steps) == most {
				steps = slices.Delete(steps, len(steps)-1, len(steps))
				to = min(to, len(steps))
				from = min(from, to-1)
			}
			steps = slices.Concat(steps[:from], []string{begin}, steps[from:to], []string{end}, steps[to:])
		}
		p[i] = steps
	}
	return p
}

// programServers plays one order at a time, on tables and connections of its own.
type programServers struct {
	db     *sql.DB
	conns  []*sql.Conn
	ids    []uint64
	redis  *redis.Client
	names  *strings.Replacer // of the tables
	schema schedule.Schema
	run    int64
	sha    string
}

func newProgramServers(t *testing.T, dsn string, client *redis.Client, worker int) *programServers {
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
	if s.schema, err = stage.LoadSchema(t.Context(), db); err != nil {
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
	if s.sha, err = script.Load(t.Context(), client).Result(); err != nil {
		t.Fatal(err)
	}
	return s
}

// compare plays a program with and without pruning, and returns in how many orders each.
func (s *programServers) compare(t *testing.T, n int64, p program) (pruned, all int64) {
	explored := func(unpruned bool) Found {
		found, err := Explore(t.Context(), programPlayer{s, p}, Search{Plan: stage.Plan{Customers: len(p)}, Unpruned: unpruned}, nil)
		if err != nil {
			t.Errorf("program %d, %s: %v", n, p, err)
		}
		return found
	}
	few, whole := explored(false), explored(true)
	for lost := range maps.Keys(whole.outcomes) {
		if few.outcomes[lost] == 0 {
			t.Errorf("program %d: pruning loses an outcome: %s\n%s\n%d orders of %d", n, p, lost, few.Runs, whole.Runs)
			break
		}
	}
	return int64(few.Runs), int64(whole.Runs)
}

// programPlayer plays the orders of one program.
type programPlayer struct {
	*programServers
	program
}

func (programPlayer) Slots([]schedule.Event) int { return 1 }

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

func (s programPlayer) Play(ctx context.Context, p stage.Plan, choose func() stage.Chooser) (schedule.Record, error) {
	s.run += 10
	if _, err := s.db.ExecContext(ctx, s.names.Replace(fmt.Sprintf("INSERT INTO a (id, grp, v) VALUES (%d, %d, 1), (%d, %d, 2)", s.run+1, s.run, s.run+2, s.run))); err != nil {
		return schedule.Record{}, err
	}
	customers := make([]*programCustomer, len(s.program))
	for i := range customers {
		customers[i] = &programCustomer{left: s.program[i], isolation: noTransaction, read: "1"}
		customers[i].skip()
	}
	defer s.end(customers)
	var past schedule.Schedule
	for chooser := choose(); ; {
		next := stage.Next{Past: past, Why: func(c schedule.Choice) string { return c.String() + " cannot be" }}
		parties := s.parties(customers)
		for i, c := range customers {
			if parties[i].AtStep {
				next.Options = append(next.Options, stage.Option{
					Choice:  schedule.Choice{Customer: schedule.Customer('A' + i), Step: fmt.Sprint("s", c.sent+1)},
					Touches: s.schema.StepTouches(i, parties), RowHeld: s.schema.IsHeld(i, parties),
				})
			}
		}
		if len(next.Options) == 0 {
			break
		}
		chosen, err := chooser(next)
		if err != nil {
			return schedule.Record{}, err
		}
		if chosen < 0 {
			return schedule.Record{}, fmt.Errorf("%s: nobody can go on", past)
		}
		c := next.Options[chosen].Choice
		past = append(past, c)
		s.send(ctx, int(c.Customer-'A'), customers)
		if err := s.settle(ctx, customers); err != nil {
			return schedule.Record{}, fmt.Errorf("%s: %w", past, err)
		}
	}
	s.end(customers)
	outcome, err := s.outcome(ctx, customers)
	return schedule.Record{Schedule: past, Played: past, Outcome: schedule.Outcome{Verdict: verdict.Held, Cause: schedule.Cause(outcome)}}, err
}

func (s programPlayer) parties(customers []*programCustomer) []schedule.Party {
	all := make([]schedule.Party, len(customers))
	for i, c := range customers {
		all[i] = schedule.Party{Next: c.next(s), AtStep: c.flying == nil && len(c.left) > 0, Waiting: c.waiting, Held: slices.Concat(c.tx, c.named)}
	}
	return all
}

// skip takes in what is no step.
func (c *programCustomer) skip() {
	for len(c.left) > 0 && strings.HasPrefix(c.left[0], "BEGIN") {
		c.begin, c.left = c.left[0], c.left[1:]
		c.isolation = "Repeatable Read"
		if c.begin != "BEGIN" {
			c.isolation = "Read Committed"
		}
	}
}

// next is the next request, or the one under way.
func (c *programCustomer) next(s programPlayer) schedule.Request {
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
func (s programPlayer) send(ctx context.Context, i int, customers []*programCustomer) {
	c := customers[i]
	c.request = c.next(s)
	c.left, c.sent = c.left[1:], c.sent+1
	begin := c.begin
	c.begin = ""
	c.flying = make(chan programAnswer, 1)
	go func(to chan<- programAnswer, r schedule.Request) {
		var a programAnswer
		if begin != "" {
			a.err = s.begin(ctx, i, begin)
		}
		if a.err == nil {
			a.text, a.err = s.ask(ctx, i, r)
		}
		to <- a
	}(c.flying, c.request)
}

func (s programPlayer) begin(ctx context.Context, i int, how string) error {
	statement := "START TRANSACTION"
	if how != "BEGIN" {
		statement = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION"
	}
	_, err := s.conns[i].ExecContext(ctx, statement)
	return err
}

func (s programPlayer) ask(ctx context.Context, i int, r schedule.Request) (string, error) {
	if r.Server == "redis" {
		var args []any
		for _, word := range strings.Fields(r.Text) {
			args = append(args, word)
		}
		answer, err := s.redis.Do(ctx, args...).Result()
		if errors.Is(err, redis.Nil) {
			return "nil", nil
		}
		return fmt.Sprint(answer), err
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
func (s programPlayer) settle(ctx context.Context, customers []*programCustomer) error {
	for range 3 { // an answer can be that of a victim, or let another one go on
		again := false
		for i, c := range customers {
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
	for i, c := range customers {
		if c.waiting && s.schema.MayWaitFor(i, s.parties(customers)) < 0 {
			return fmt.Errorf("%s waits, and no statement explains that", c.request.Text)
		}
	}
	return nil
}

func (s programPlayer) await(ctx context.Context, i int, c *programCustomer) error {
	for begun := time.Now(); time.Since(begun) < 5*time.Second; {
		select {
		case a := <-c.flying:
			return c.answered(a, s.schema)
		case <-time.After(2 * time.Millisecond):
		}
		waits, err := stage.WaitsInMySQL(ctx, s.db, s.ids[i])
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
	statement := schedule.Statement{Text: c.request.Text, Matched: a.err == nil && a.text != "no row" && a.text != "0 rows"}
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
func (s programPlayer) end(customers []*programCustomer) {
	for i, c := range customers {
		if c.flying == nil {
			_, _ = s.conns[i].ExecContext(context.Background(), "ROLLBACK; DO RELEASE_ALL_LOCKS()")
		}
	}
	var waiting []*programCustomer // they go on when another one has ended
	for _, c := range customers {
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
		s.end(customers)
	}
}

// outcome is what customers were answered, and what the servers have in the end. Rows are in the order of
// their ids, which differ in each order.
func (s programPlayer) outcome(ctx context.Context, customers []*programCustomer) (string, error) {
	var all []string
	for _, c := range customers {
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
		value, err := s.redis.Get(ctx, fmt.Sprint(key, s.run)).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return "", err
		}
		all = append(all, key+"="+value)
	}
	return strings.Join(all, " / "), rows.Err()
}
