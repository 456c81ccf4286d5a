package explore_test

import (
	"context"
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

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/testserver"
)

// programsEnv is how many programs TestPruningLosesNoOutcomeOfPrograms plays: 5000 in `scripts/check.sh programs`.
const programsEnv = "EXPLORE_PROGRAMS"

// TestPruningLosesNoOutcomeOfPrograms makes small random programs of two or three customers, plays each on a real
// MySQL and Redis in every order, and wants the same outcomes of the orders that pruning leaves.
func TestPruningLosesNoOutcomeOfPrograms(t *testing.T) {
	programs := 60
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
	const workers = 4
	var seed, pruned, all atomic.Int64
	var working sync.WaitGroup
	for w := range workers {
		on := newProgramServers(t, mysql.DSN()+"?clientFoundRows=true&interpolateParams=true&multiStatements=true", redis.Client, w)
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
		"SELECT v + (SELECT COUNT(*) FROM b WHERE a_id = $1) FROM a WHERE id = $1", "SELECT EXISTS (SELECT 1 FROM c WHERE id = $1)", "SELECT COUNT(*) FROM a WHERE grp = $g AND id IN (SELECT a_id FROM b WHERE a_id = $1)",
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
	{{"SELECT v FROM a WHERE id = $1 LOCK IN SHARE MODE"}, {"BEGIN READ COMMITTED", "UPDATE a SET v = $v - 1 WHERE id = $1", "ROLLBACK"}, {"BEGIN", "INSERT INTO b (a_id, v) VALUES ($1, $v)", "COMMIT"}},
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
	{{"SELECT v + (SELECT COUNT(*) FROM b WHERE a_id = $1) FROM a WHERE id = $1"}, {"BEGIN", "INSERT INTO b (a_id, v) VALUES ($1, 5)", "UPDATE a SET v = v + 3 WHERE id = $1", "COMMIT"}},
	{{"BEGIN SERIALIZABLE", "SELECT EXISTS (SELECT 1 FROM c WHERE id = $1)", "INSERT INTO c (id) VALUES ($1)", "COMMIT"}, {"BEGIN SERIALIZABLE", "SELECT EXISTS (SELECT 1 FROM c WHERE id = $1)", "INSERT INTO c (id) VALUES ($1)", "COMMIT"}},
	{{"BEGIN SERIALIZABLE", "SELECT COUNT(*) FROM b WHERE a_id = $1", "INSERT INTO b (a_id, v) VALUES ($1, 5)", "COMMIT"}, {"BEGIN SERIALIZABLE", "SELECT COUNT(*) FROM b WHERE a_id = $1", "INSERT INTO b (a_id, v) VALUES ($1, 5)", "COMMIT"}},
	{{"BEGIN", "INSERT INTO c (id) VALUES ($1)", "COMMIT"}, {"BEGIN", "SELECT COUNT(*) FROM c WHERE id = $1 FOR UPDATE", "COMMIT"}},
	{{"BEGIN", "INSERT INTO c (id) VALUES ($1)", "COMMIT"}, {"BEGIN", "SELECT COUNT(*) FROM c WHERE id = $1 LOCK IN SHARE MODE", "COMMIT"}},
}

// script moves what it finds in its first key to its last one, and counts there.
const script = `redis.call('INCRBY', KEYS[#KEYS], (tonumber(redis.call('GET', KEYS[1])) or 1) * 2) return redis.call('GET', KEYS[#KEYS])`

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
			begin := []string{"BEGIN", "BEGIN", "BEGIN", "BEGIN READ COMMITTED", "BEGIN READ COMMITTED", "BEGIN SERIALIZABLE"}[r.IntN(6)]
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

// compare plays a program with and without pruning, and returns in how many orders each.
func (s *programServers) compare(t *testing.T, n int64, p program) (pruned, all int64) {
	explored := func(unpruned bool) explore.Found {
		play := func(ctx context.Context, choose func() explore.Chooser) (schedule.Record, error) {
			run, err := s.begin(ctx, p)
			if err != nil {
				return schedule.Record{}, err
			}
			record, err := explore.Play(ctx, run, choose())
			if err != nil { // it was given up: what is under way would close its connection when ctx ends
				run.end()
			}
			return record, err
		}
		found, err := explore.Explore(t.Context(), play, explore.Search{Unpruned: unpruned}, nil)
		if err != nil {
			t.Errorf("program %d, %s: %v", n, p, err)
		}
		return found
	}
	few, whole := explored(false), explored(true)
	for lost := range maps.Keys(whole.Outcomes) {
		if few.Outcomes[lost] == 0 {
			t.Errorf("program %d: pruning loses an outcome: %s\n%s\n%d orders of %d", n, p, lost, few.Runs, whole.Runs)
			break
		}
	}
	return int64(few.Runs), int64(whole.Runs)
}
