package shop

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"stocklock/internal/stalltest"
	"stocklock/internal/stock"
	"stocklock/internal/testserver"
)

// TestSlowReadersHoldNoSlots has more connections than there are slots ask for more than their
// buffers hold, and read nothing. Others are served meanwhile.
func TestSlowReadersHoldNoSlots(t *testing.T) {
	const slots, readers = 2, 4
	s := open(t, func(c *Config) { c.MaxInFlight, c.AnswerTimeout = slots, time.Hour })
	item := s.item(100)
	s.manyItems()
	blocked := func() int { return strings.Count(goroutines(), "boundedWriter).Write") }
	for n := range readers {
		s.readSlowly()
		testserver.Await(t, "an answer to wait for its reader", func() bool { return blocked() == n+1 })
	}
	testserver.Await(t, "no slot to be taken while nothing but answers is written", func() bool { return s.inFlight.Load() == 0 && blocked() == readers })
	for range 10 {
		if got := s.buy(item); got.status != http.StatusCreated {
			t.Errorf("a sale among slow readers: %d %s", got.status, got.body)
		}
		if got := s.get("/api/v1/items?limit=500"); got.status != http.StatusOK {
			t.Errorf("a look among slow readers: %d %s", got.status, got.body)
		}
	}
}

// TestAnAnswerThatIsNotReadInTimeIsGivenUp: the shop closes the connection, and with it ends what the
// client sends.
func TestAnAnswerThatIsNotReadInTimeIsGivenUp(t *testing.T) {
	s := open(t, func(c *Config) { c.AnswerTimeout = 100 * time.Millisecond })
	s.manyItems()
	conn := s.readSlowly()
	testserver.Await(t, "the connection to be closed", func() bool {
		_, err := io.WriteString(conn, "\r\n")
		return err != nil
	})
}

// manyItems makes the list of items longer than the buffers of a connection are: a < has six bytes
// in JSON.
func (r *running) manyItems() {
	r.t.Helper()
	rows := "(REPEAT('<', 100), 1)"
	if _, err := r.store.Pool().ExecContext(r.t.Context(), "INSERT INTO items (name, stock) VALUES "+rows+strings.Repeat(", "+rows, 499)); err != nil {
		r.t.Fatal(err)
	}
}

// readSlowly asks for the list of items on a connection of which nothing is read.
func (r *running) readSlowly() net.Conn {
	r.t.Helper()
	conn := r.dial()
	if err := conn.(*net.TCPConn).SetReadBuffer(2 << 10); err != nil {
		r.t.Fatal(err)
	}
	// The buffers may hold one answer, and not a hundred.
	if _, err := io.WriteString(conn, strings.Repeat("GET /api/v1/items?limit=500 HTTP/1.1\r\nHost: shop\r\n\r\n", 100)); err != nil {
		r.t.Fatal(err)
	}
	return conn
}

// TestAnAnswerHasItsWholeTime orders on connections whose last answer, or whose request, is older than
// an answer may take: neither takes time away from what the shop writes.
func TestAnAnswerHasItsWholeTime(t *testing.T) {
	const bound, late = time.Second, 1100 * time.Millisecond
	stalls := stalltest.Start(t)
	wrong := make(chan string, 8)
	s := open(t, func(c *Config) { c.AnswerTimeout, c.Deps.Wait = bound, time.Minute })
	item := s.item(4)
	var ordering sync.WaitGroup
	for name, slow := range map[string]struct{ pause, sale time.Duration }{"an idle connection": {pause: late}, "a slow sale": {sale: late}} {
		conn := s.dial()
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		answers := bufio.NewReader(conn)
		next := func() (status int) {
			if response, err := http.ReadResponse(answers, nil); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				status = response.StatusCode
			}
			return status
		}
		order := func(sleep time.Duration) {
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n%s: read %s\r\nContent-Length: 14\r\n\r\n",
				ordersPath(item), sleepHeader, sleep)
			if status := next(); status != http.StatusContinue {
				wrong <- fmt.Sprintf("%s: answered %d before the body was sent, want 100", name, status)
			}
			fmt.Fprint(conn, `{"quantity":1}`)
			if status := next(); status != http.StatusCreated {
				wrong <- fmt.Sprintf("%s: answered %d, want 201", name, status)
			}
		}
		ordering.Go(func() {
			order(0)
			time.Sleep(slow.pause)
			order(slow.sale)
		})
	}
	ordering.Wait()
	if len(wrong) > 0 {
		stalls.Fatalf(bound/2, "%s", <-wrong)
	}
}

// TestIdleConnectionsMakeRoom has as many idle connections as there may be. Another client is served,
// and one of the idle connections is closed.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	const bound = 5
	s := open(t, func(c *Config) { c.MaxConnections = bound })
	browser.CloseIdleConnections()
	var idle []net.Conn
	for range bound {
		conn := s.dial()
		s.ask(conn, "GET /livez HTTP/1.1\r\nHost: shop\r\n\r\n", http.StatusOK)
		idle = append(idle, conn)
	}
	if got := s.buy(s.item(1)); got.status != http.StatusCreated {
		t.Errorf("a sale beside idle connections: %d %s", got.status, got.body)
	}
	closed := make(chan error, bound)
	for _, conn := range idle {
		go func() {
			_, err := conn.Read(make([]byte, 1))
			closed <- err
		}()
	}
	if err := <-closed; err != io.EOF {
		t.Errorf("an idle connection: %v, want that it was closed", err)
	}
}

// ask sends a request on a connection, and reads its answer.
func (r *running) ask(conn net.Conn, request string, want int) {
	r.t.Helper()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(conn, request)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	body, _ := io.ReadAll(response.Body)
	if response.StatusCode != want {
		r.t.Errorf("%.20q is answered with %d %s, want %d", request, response.StatusCode, body, want)
	}
}

// TestAHalfClosedConnectionIsAnswered: a client that has sent all that it will still reads.
func TestAHalfClosedConnectionIsAnswered(t *testing.T) {
	s := open(t, nil)
	item := s.item(1)
	body := `{"quantity":1}`
	for want, request := range map[int]string{
		http.StatusCreated: fmt.Sprintf("POST %s HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n%s: read 200ms\r\nContent-Length: %d\r\n\r\n%s",
			ordersPath(item), sleepHeader, len(body), body),
		http.StatusOK: fmt.Sprintf("GET /api/v1/items/%d HTTP/1.1\r\nHost: shop\r\n\r\n", item.ID),
	} {
		conn := s.dial().(*net.TCPConn)
		_, _ = io.WriteString(conn, request)
		_ = conn.CloseWrite()
		s.ask(conn, "", want)
	}
}

// TestReadsDoNotTakeThePlacesOfSales, neither those for requests nor the connections to MySQL.
func TestReadsDoNotTakeThePlacesOfSales(t *testing.T) {
	s := open(t, func(c *Config) { c.MaxInFlight = 2 })
	for s.reads.TryAcquire(1) {
		defer s.reads.Release(1)
	}
	if got := s.get("/api/v1/items"); got.problem() != "busy" {
		t.Errorf("a look in a crowd of readers: %d %s, want busy", got.status, got.body)
	}
	if got := s.buy(s.item(1)); got.status != http.StatusCreated {
		t.Errorf("a sale in a crowd of readers: %d %s", got.status, got.body)
	}
	if most := open(t, nil).maxReads(); most > stock.PoolSize/2 {
		t.Errorf("%d reads at once, and MySQL has %d connections", most, stock.PoolSize)
	}
}

// dial opens a connection to the public listener, which ends with the test.
func (r *running) dial() net.Conn {
	r.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	return conn
}
