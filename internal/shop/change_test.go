package shop

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"stocklock/internal/stock"
)

// staffed has the changes of items on a listener of their own, where another header says who asks.
func staffed(c *Config) {
	c.Subject, c.Staff = SubjectHeader("X-Subject"), SubjectHeader("X-Staff")
}

// staff asks for a change, as ann. The headers are added, or replace those of the key and the
// subject.
func (r *running) staff(method, path, key, body string, headers ...string) answer {
	r.t.Helper()
	header := http.Header{"Content-Type": {"application/json"}, "X-Staff": {"ann"}}
	if key != "" {
		header.Set(IdempotencyKeyHeader, key)
	}
	for i := 0; i < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			header.Del(headers[i])
		}
	}
	got, err := send(r.t.Context(), method, r.staffURL+path, body, header)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	checkContract(r.t, method, path, header, got)
	return got
}

func itemPath(item stock.Item) string { return fmt.Sprintf("/api/v1/items/%d", item.ID) }

// TestStaffChangesItems makes each change, and repeats it: the answer is the same, and what it did
// is done once.
func TestStaffChangesItems(t *testing.T) {
	s := open(t, staffed)
	created := s.staff("POST", "/api/v1/items", "k-create", `{"name":"a boök 📕","stock":5}`)
	var item stock.Item
	decode(t, created, &item)
	if created.status != 201 || item.Name != "a boök 📕" || item.Stock != 5 || created.header.Get("Location") != itemPath(item) || created.header.Get("ETag") != entityTag(item) {
		t.Fatalf("create: %d %v %s", created.status, created.header, created.body)
	}
	order := s.buy(item, "X-Subject", "ann").order(t)
	for _, change := range []struct {
		method, path, key, body, ifMatch string
		name                             string
		stock, version                   int64
	}{
		{"POST", itemPath(item) + "/restocks", "k-restock", `{"quantity":10}`, "", "a boök 📕", 14, 2},
		{"PATCH", itemPath(item), "k-rename", `{"name":"tea"}`, "", "tea", 14, 3},
		{"PATCH", itemPath(item), "k-rename-2", `{"name":"the"}`, entityTag(stock.Item{Version: 3, Stock: 14, Name: "tea"}), "the", 14, 4},
		{"PUT", itemPath(item) + "/stock", "k-correct", `{"stock":0}`, entityTag(stock.Item{Version: 4, Stock: 14, Name: "the"}), "the", 0, 5},
		{"POST", "/api/v1/orders/" + order.ID + "/cancellation", "k-cancel", "", "", "the", 1, 6},
	} {
		first := s.staff(change.method, change.path, change.key, change.body, "If-Match", change.ifMatch)
		again := s.staff(change.method, change.path, change.key, change.body, "If-Match", change.ifMatch)
		if first.status != 200 || first.header.Get(ReplayedHeader) != "" {
			t.Fatalf("%s: %d %s", change.key, first.status, first.body)
		}
		if again.status != 200 || again.body != first.body || again.header.Get("ETag") != first.header.Get("ETag") || again.header.Get(ReplayedHeader) != "true" {
			t.Errorf("%s repeated: %d %s, want %s", change.key, again.status, again.body, first.body)
		}
		now := s.get(itemPath(item))
		var is stock.Item
		decode(t, now, &is)
		want := stock.Item{ID: item.ID, Name: change.name, Stock: change.stock, Version: change.version}
		if is != want || now.header.Get("ETag") != entityTag(want) {
			t.Errorf("after %s: %+v, want %+v", change.key, is, want)
		}
		if got := s.staff("POST", itemPath(item)+"/restocks", change.key, `{"quantity":7}`); got.problem() != "idempotency-key-reused" {
			t.Errorf("%s for something else: %d %s", change.key, got.status, got.body)
		}
	}
	if got := s.staff("GET", "/api/v1/orders/"+order.ID, "", "").order(t); got.CancelledAt == nil {
		t.Errorf("the order is %+v, want it cancelled", got)
	}

	changes, err := s.store.Changes(t.Context(), item.ID)
	if err != nil {
		t.Fatal(err)
	}
	var audit []string
	for _, c := range changes {
		audit = append(audit, fmt.Sprintf("%s %s: %s %d, %s %d, version %d", c.Subject, c.Action, c.NameBefore, c.StockBefore, c.NameAfter, c.StockAfter, c.Version))
		if c.Shop != "test-shop" || c.RequestID == "" || c.CreatedAt.IsZero() || (c.OrderID != nil) != (c.Action == stock.Cancelled) {
			t.Errorf("the audit has %+v", c)
		}
	}
	want := []string{
		"ann create:  0, a boök 📕 5, version 0",
		"ann restock: a boök 📕 4, a boök 📕 14, version 2",
		"ann rename: a boök 📕 14, tea 14, version 3",
		"ann rename: tea 14, the 14, version 4",
		"ann correct: the 14, the 0, version 5",
		"ann cancel: the 0, the 1, version 6",
	}
	if got := strings.Join(audit, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("the audit has\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// TestChangesInFlightAreMadeOnce repeats a restock many times at once, and cancels an order from
// many sides.
func TestChangesInFlightAreMadeOnce(t *testing.T) {
	s := open(t, staffed)
	item := s.item(3)
	order := s.buy(item, "X-Subject", "ann").order(t)
	var mu sync.Mutex
	answers := map[string]int{}
	var asking sync.WaitGroup
	for n := range 10 {
		asking.Go(func() {
			restocked := s.staff("POST", itemPath(item)+"/restocks", "k", `{"quantity":100}`)
			cancelled := s.staff("POST", "/api/v1/orders/"+order.ID+"/cancellation", fmt.Sprint("k-", n), "")
			mu.Lock()
			defer mu.Unlock()
			answers[fmt.Sprint("restock ", restocked.status)]++
			answers[fmt.Sprint("cancel ", cancelled.status, cancelled.problem())]++
		})
	}
	asking.Wait()
	if fmt.Sprint(answers) != "map[cancel 200:1 cancel 409already-cancelled:9 restock 200:10]" || s.left(item) != 103 {
		t.Errorf("answered %v, %d units left, want 103", answers, s.left(item))
	}
}

// TestConditionsThatHold are those of RFC 9110: any version, and one of a list.
func TestConditionsThatHold(t *testing.T) {
	s := open(t, staffed)
	item := s.item(5)
	for units, condition := range []string{"*", `"1", %s`, `W/"1" ,,%s,`} {
		now, err := s.store.Read(t.Context(), item.ID)
		if err != nil {
			t.Fatal(err)
		}
		condition = strings.Replace(condition, "%s", entityTag(now), 1)
		got := s.staff("PUT", itemPath(item)+"/stock", fmt.Sprint("k", units), fmt.Sprintf(`{"stock":%d}`, units), "If-Match", condition)
		if got.status != 200 || s.left(item) != int64(units) {
			t.Errorf("If-Match: %s: %d %s", condition, got.status, got.body)
		}
	}
}

// TestNamesInAllLanguages are accepted, with the joiners that some of them need.
func TestNamesInAllLanguages(t *testing.T) {
	s := open(t, staffed)
	for i, name := range []string{"x", "a book", "می\u200cخواهم", "日本\u3000語", "👩\u200d👩\u200d👧 ♥️"} {
		got := s.staff("POST", "/api/v1/items", fmt.Sprint("k", i), fmt.Sprintf(`{"name":%q,"stock":1}`, name))
		var item stock.Item
		if decode(t, got, &item); item.Name != name {
			t.Errorf("%q: %d %s", name, got.status, got.body)
		}
	}
}

func TestChangesThatAreRefusedChangeNothing(t *testing.T) {
	s := open(t, staffed)
	item := s.item(5)
	path := itemPath(item)
	foreign := s.buy(item, "X-Subject", "ann").order(t)
	if _, err := s.store.Pool().ExecContext(t.Context(), "UPDATE orders SET strategy = 'buckets' WHERE public_id = ?", foreign.ID); err != nil {
		t.Fatal(err)
	}
	before, err := s.store.Read(t.Context(), item.ID)
	if err != nil {
		t.Fatal(err)
	}
	const most = "1000000000000"
	long := strings.Repeat("ä", 101)
	for _, test := range []struct {
		name, method, path, body, ifMatch string
		status                            int
		problem                           string
	}{
		{"a correction without the version", "PUT", path + "/stock", `{"stock":1}`, "", 428, "version-required"},
		{"a correction of an old version", "PUT", path + "/stock", `{"stock":1}`, entityTag(item), 412, "version-changed"},
		{"a rename of an old version", "PATCH", path, `{"name":"x"}`, entityTag(item), 412, "version-changed"},
		{"a correction of the version with another stock", "PUT", path + "/stock", `{"stock":1}`, entityTag(stock.Item{Version: before.Version, Stock: before.Stock + 1, Name: before.Name}), 412, "version-changed"},
		{"a rename of the version with another name", "PATCH", path, `{"name":"x"}`, entityTag(stock.Item{Version: before.Version, Stock: before.Stock, Name: "y"}), 412, "version-changed"},
		{"any version of an unknown item", "PUT", "/api/v1/items/0/stock", `{"stock":1}`, "*", 404, "not-found"},
		{"any version and one", "PUT", path + "/stock", `{"stock":1}`, `*, "1"`, 400, "malformed"},
		{"the version as a weak one", "PUT", path + "/stock", `{"stock":1}`, "W/" + entityTag(before), 412, "version-changed"},
		{"a version of an older shop", "PUT", path + "/stock", `{"stock":1}`, `"1"`, 412, "version-changed"},
		{"a bare version", "PUT", path + "/stock", `{"stock":1}`, `1`, 400, "malformed"},
		{"two versions", "PUT", path + "/stock", `{"stock":1}`, `"1", "2"`, 412, "version-changed"},
		{"a stock below 0", "PUT", path + "/stock", `{"stock":-1}`, `"1"`, 422, "invalid"},
		{"no stock", "PUT", path + "/stock", `{}`, `"1"`, 422, "invalid"},
		{"a stock too large", "PUT", path + "/stock", `{"stock":1000000000001}`, `"1"`, 422, "invalid"},
		{"a restock of nothing", "POST", path + "/restocks", `{"quantity":0}`, "", 422, "invalid"},
		{"a restock beyond the most", "POST", path + "/restocks", `{"quantity":` + most + `}`, "", 409, "too-many-units"},
		{"a restock with a field too much", "POST", path + "/restocks", `{"quantity":1,"stock":1}`, "", 400, "malformed"},
		{"a restock of an unknown item", "POST", "/api/v1/items/0/restocks", `{"quantity":1}`, "", 404, "not-found"},
		{"a name too long", "PATCH", path, `{"name":"` + long + `"}`, "", 422, "invalid"},
		{"no name", "PATCH", path, `{"name":""}`, "", 422, "invalid"},
		{"a name that is a number", "PATCH", path, `{"name":1}`, "", 422, "invalid"},
		{"a name with a line feed", "PATCH", path, `{"name":"a\nb"}`, "", 422, "invalid"},
		{"a name with a NUL", "PATCH", path, `{"name":"a\u0000"}`, "", 422, "invalid"},
		{"a name that turns the direction", "PATCH", path, `{"name":"a\u202eb"}`, "", 422, "invalid"},
		{"a name with half a character", "PATCH", path, `{"name":"a\ud800b"}`, "", 422, "invalid"},
		{"a name of a space", "PATCH", path, `{"name":" "}`, "", 422, "invalid"},
		{"a name that ends with a wide space", "PATCH", path, `{"name":"a\u3000"}`, "", 422, "invalid"},
		{"a name twice", "PATCH", path, `{"name":"name","name":"x"}`, "", 400, "malformed"},
		{"a new item without stock", "POST", "/api/v1/items", `{"name":"x"}`, "", 422, "invalid"},
		{"a new item without a name", "POST", "/api/v1/items", `{"stock":1}`, "", 422, "invalid"},
		{"an unknown order", "POST", "/api/v1/orders/019353a2-0000-7000-8000-000000000000/cancellation", "", "", 404, "not-found"},
		{"an order by a number", "POST", "/api/v1/orders/1/cancellation", "", "", 400, "malformed"},
		{"an order of the lab", "POST", "/api/v1/orders/" + foreign.ID + "/cancellation", "", "", 422, "invalid"},
	} {
		got := s.staff(test.method, test.path, "k", test.body, "If-Match", test.ifMatch)
		if got.status != test.status || got.problem() != test.problem {
			t.Errorf("%s: %d %s, want %d %s", test.name, got.status, got.body, test.status, test.problem)
		}
	}
	for name, headers := range map[string][]string{
		"no key": {"Idempotency-Key", ""}, "no subject": {"X-Staff", ""}, "a customer": {"X-Staff", "", "X-Subject", "ann"}, "a subject with a space": {"X-Staff", "a b"},
	} {
		if got := s.staff("POST", path+"/restocks", "k", `{"quantity":1}`, headers...); got.problem() != "malformed" {
			t.Errorf("%s: %d %s, want malformed", name, got.status, got.body)
		}
	}
	now, err := s.store.Read(t.Context(), item.ID)
	if changes, changesErr := s.store.Changes(t.Context(), item.ID); err != nil || changesErr != nil || now != before || len(changes) > 0 {
		t.Errorf("the item is %+v, want %+v; the audit has %+v", now, before, changes)
	}
}

// TestOnlyTheListenerOfTheStaffChangesItems asks the others.
func TestOnlyTheListenerOfTheStaffChangesItems(t *testing.T) {
	s := open(t, staffed)
	item := s.item(5)
	order := s.buy(item, "X-Subject", "ann").order(t)
	for name, url := range map[string]string{"public": s.url, "internal": s.internal} {
		for _, change := range []struct{ method, path, body string }{
			{"POST", "/api/v1/items", `{"name":"x","stock":1}`},
			{"PATCH", itemPath(item), `{"name":"x"}`},
			{"POST", itemPath(item) + "/restocks", `{"quantity":1}`},
			{"PUT", itemPath(item) + "/stock", `{"stock":1}`},
			{"POST", "/api/v1/orders/" + order.ID + "/cancellation", ""},
		} {
			header := http.Header{"Content-Type": {"application/json"}, "X-Subject": {"ann"}, "X-Staff": {"ann"}, "Idempotency-Key": {"key-of-some-customer-1"}, "If-Match": {`"1"`}}
			got, err := send(t.Context(), change.method, url+change.path, change.body, header)
			if err != nil || got.status != 404 && got.status != 405 {
				t.Errorf("%s, %s %s: %d %s, %v", name, change.method, change.path, got.status, got.body, err)
			}
		}
	}
	if left := s.left(item); left != 4 {
		t.Errorf("%d units left, want 4", left)
	}
}

func TestAnItemThatWasSeenIsNotSentAgain(t *testing.T) {
	s := open(t, nil)
	item := s.item(5)
	ask := func(tag string) answer {
		return s.do(t.Context(), http.MethodGet, itemPath(item), "", http.Header{"If-None-Match": {tag}})
	}
	if got := ask(entityTag(item)); got.status != 304 || got.body != "" || got.header.Get("ETag") != entityTag(item) {
		t.Errorf("the version that is: %d %q", got.status, got.body)
	}
	for tag, want := range map[string]int{"*": 304, "W/" + entityTag(item): 304, `"1", ` + entityTag(item): 304, `"1"`: 200, entityTag(item)[1:]: 200} {
		if got := ask(tag); got.status != want {
			t.Errorf("If-None-Match %s: %d %s, want %d", tag, got.status, got.body, want)
		}
	}
}

// TestAWithdrawnItemIsNotSold changes an item that is not on sale, and offers it again.
func TestAWithdrawnItemIsNotSold(t *testing.T) {
	s := open(t, staffed)
	item, other := s.item(5), s.item(5)
	order := s.buy(item, "X-Subject", "ann").order(t)
	withdrawal := itemPath(item) + "/withdrawal"
	for i, change := range []struct {
		method, path, body string
		stock, withdrawn   int64
	}{
		{"POST", withdrawal, "", 0, 4},
		{"POST", itemPath(item) + "/restocks", `{"quantity":3}`, 0, 7},
		{"POST", "/api/v1/orders/" + order.ID + "/cancellation", "", 0, 8},
		{"PATCH", itemPath(item), `{"name":"tea"}`, 0, 8},
		{"PUT", itemPath(item) + "/stock", `{"stock":6}`, 0, 6},
		{"POST", withdrawal, "", 0, 6},
		{"DELETE", withdrawal, "", 6, -1},
	} {
		name, key, seen := change.method+" "+change.path, fmt.Sprint("k-", i), s.get(itemPath(item)).header.Get("ETag")
		first := s.staff(change.method, change.path, key, change.body, "If-Match", seen)
		again := s.staff(change.method, change.path, key, change.body, "If-Match", seen)
		if first.status != 200 || again.body != first.body || again.header.Get(ReplayedHeader) != "true" {
			t.Fatalf("%s: %d %s, and again %d %s", name, first.status, first.body, again.status, again.body)
		}
		var is stock.Item
		now := s.get(itemPath(item))
		decode(t, now, &is)
		withdrawn := int64(-1)
		if is.Withdrawn != nil {
			withdrawn = *is.Withdrawn
		}
		if is.Stock != change.stock || withdrawn != change.withdrawn || now.header.Get("ETag") == seen {
			t.Errorf("after %s: %s with the ETag %s, want a stock of %d and %d withdrawn", name, now.body, now.header.Get("ETag"), change.stock, change.withdrawn)
		}
		if change.withdrawn < 0 {
			break
		}
		if got := s.buy(item, "X-Subject", "ann"); got.problem() != "sold-out" {
			t.Errorf("after %s, a sale: %d %s", name, got.status, got.body)
		}
		if got := s.order([]stock.Item{item, other}, "X-Subject", "ann"); got.problem() != "sold-out" {
			t.Errorf("after %s, a basket: %d %s", name, got.status, got.body)
		}
	}
	if got := s.buy(item, "X-Subject", "ann"); got.status != 201 {
		t.Errorf("a sale of an item that is offered again: %d %s", got.status, got.body)
	}
	s.wantLeft([]stock.Item{item, other}, 5, 5)
}

// TestOrdersOfEachWayCanBeCancelled, also where a copy of the shop has left out the way that made them.
func TestOrdersOfEachWayCanBeCancelled(t *testing.T) {
	s := open(t, staffed)
	item := s.item(6)
	for _, way := range []string{"fenced", "fenced-relative", "for-update", "optimistic", "conditional", "batched"} {
		order := s.buy(item, "X-Subject", "ann").order(t)
		if _, err := s.store.Pool().ExecContext(t.Context(), "UPDATE orders SET strategy = ? WHERE public_id = ?", way, order.ID); err != nil {
			t.Fatal(err)
		}
		if got := s.staff("POST", "/api/v1/orders/"+order.ID+"/cancellation", way, ""); got.status != http.StatusOK {
			t.Errorf("an order of %s: %d %s", way, got.status, got.body)
		}
	}
	s.wantLeft([]stock.Item{item}, 6)
}

// TestACustomerCancels has orders that are the customer's own, another's, nobody's, and too old.
func TestACustomerCancels(t *testing.T) {
	s := open(t, func(c *Config) {
		staffed(c)
		c.CancelWithin = time.Hour
	})
	item := s.item(5)
	cancel := func(by, id string) answer {
		header := http.Header{"Idempotency-Key": {"k-" + id}}
		if by != "" {
			header.Set("X-Subject", by)
		}
		return s.do(t.Context(), http.MethodPost, "/api/v1/orders/"+id+"/cancellation", "", header)
	}
	own, old := s.buy(item, "X-Subject", "ann").order(t), s.buy(item, "X-Subject", "ann").order(t)
	made := func(id string, ago time.Duration) {
		if _, err := s.store.Pool().ExecContext(t.Context(), "UPDATE orders SET created_at = UTC_TIMESTAMP(6) - INTERVAL ? SECOND WHERE public_id = ?", ago.Seconds(), id); err != nil {
			t.Fatal(err)
		}
	}
	made(old.ID, time.Hour+time.Minute)
	for _, test := range []struct {
		by, id string
		says   string
	}{
		{"", own.ID, "malformed"}, {"eve", own.ID, "not-found"}, {"ann", old.ID, "too-late"}, {"ann", own.ID, ""},
	} {
		if got := cancel(test.by, test.id); got.problem() != test.says {
			t.Errorf("%q cancels: %d %s, want %q", test.by, got.status, got.body, test.says)
		}
	}
	if _, err := s.store.Pool().ExecContext(t.Context(), "UPDATE orders SET strategy = 'none' WHERE public_id = ?", old.ID); err != nil {
		t.Fatal(err)
	}
	if got := cancel("eve", old.ID); got.problem() != "not-found" {
		t.Errorf("another customer learns of an order of the lab: %d %s", got.status, got.body)
	}
	made(own.ID, 2*time.Hour)
	if got := cancel("ann", own.ID); got.status != 200 || got.header.Get(ReplayedHeader) != "true" || got.order(t).CancelledAt == nil {
		t.Errorf("a repeat when the time is over: %d %s, want the cancelled order", got.status, got.body)
	}
	s.wantLeft([]stock.Item{item}, 4)
	changes, err := s.store.Changes(t.Context(), item.ID)
	if err != nil || len(changes) != 1 || changes[0].Action != stock.CancelledOwn || changes[0].Subject != "ann" {
		t.Errorf("the audit has %+v, %v", changes, err)
	}
	if strings.Contains(s.log.String(), `"subject":"ann"`) {
		t.Error("the log names a customer")
	}

	without := open(t, staffed)
	order := without.buy(without.item(1), "X-Subject", "ann").order(t)
	if got := without.do(t.Context(), http.MethodPost, "/api/v1/orders/"+order.ID+"/cancellation", "", http.Header{"X-Subject": {"ann"}, "Idempotency-Key": {"k"}}); got.problem() != "not-found" {
		t.Errorf("a customer cancels where no time is set: %d %s", got.status, got.body)
	}
}
