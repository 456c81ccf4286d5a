package shop

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/strategy"
	"stocklock/internal/testserver"

	"github.com/google/uuid"
)

// reservingShop is a shop that offers reservations, and the keys of those who ask it.
type reservingShop struct {
	*running
	keys atomic.Int64
}

// openReserving starts a shop that offers reservations. It ends none by itself.
func openReserving(t *testing.T, change func(*Config)) *reservingShop {
	t.Helper()
	return &reservingShop{running: open(t, func(cfg *Config) {
		cfg.Strategy = byName(t, "conditional")
		cfg.Subject, cfg.Staff, cfg.Limit, cfg.KeyTTL = SubjectHeader("Customer"), SubjectHeader("Staff"), 10, time.Hour
		cfg.Reservations = &Reservations{Terms: stock.Terms{Open: 5, Longest: 15 * time.Minute, Window: 30 * time.Minute, Grace: time.Minute}}
		cfg.SweepInterval = -1
		if change != nil {
			change(cfg)
		}
	})}
}

func (r *reservingShop) ask(method, path, body string, headers ...string) answer {
	r.t.Helper()
	url, header := r.url, http.Header{"Content-Type": {"application/json"}}
	for i := 0; i < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	if header.Get("Staff") != "" {
		url = r.staffURL
	}
	got, err := send(r.t.Context(), method, url+path, body, header)
	if err != nil {
		r.t.Fatal(err)
	}
	checkContract(r.t, method, path, header, got)
	return got
}

// customer and backend post, as a customer and as the merchant's backend.
func (r *reservingShop) customer(path, body string) answer {
	return r.ask(http.MethodPost, apiPrefix+path, body, "Customer", "ann")
}

func (r *reservingShop) backend(path, body string) answer {
	return r.ask(http.MethodPost, apiPrefix+path, body, "Staff", "payments", IdempotencyKeyHeader, r.key())
}

func (r *reservingShop) key() string { return fmt.Sprint("key-", r.keys.Add(1)) }

func (r *reservingShop) reserve(customer, key, body string) answer {
	r.t.Helper()
	return r.ask(http.MethodPost, ReservationsPath, body, "Customer", customer, IdempotencyKeyHeader, key)
}

func (a answer) reservation(t *testing.T) (h publicReservation) {
	t.Helper()
	if a.status >= 300 {
		t.Fatalf("answer %d %s is no reservation", a.status, a.body)
	}
	decode(t, a, &h)
	return h
}

// hold reserves one unit of a new item with one unit.
func (r *reservingShop) hold() (item stock.Item, h publicReservation) {
	r.t.Helper()
	item = r.item(1)
	return item, r.reserve("ann", r.key(), one(item)).reservation(r.t)
}

func one(item stock.Item) string {
	return fmt.Sprintf(`{"lines": [{"item_id": %d, "quantity": 1}], "seconds": 60}`, item.ID)
}

// overdue makes a live reservation overdue, also beyond its grace.
func (r *reservingShop) overdue(id string) {
	r.t.Helper()
	for _, statement := range []string{
		"UPDATE holds SET created_at = created_at - INTERVAL 2 DAY, held_until = held_until - INTERVAL 2 DAY, pay_until = pay_until - INTERVAL 2 DAY, live_until = live_until - INTERVAL 2 DAY WHERE public_id = ?",
		"UPDATE hold_lines l JOIN holds h ON h.id = l.hold_id SET l.live_until = h.live_until WHERE h.public_id = ?",
	} {
		if _, err := r.store.Pool().ExecContext(r.t.Context(), statement, id); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *reservingShop) sweep() {
	r.t.Helper()
	if _, err := r.endOverdue(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// in makes a reservation in a state. A confirmed one was paid by the payment "first-" and its id.
func (r *reservingShop) in(state stock.HoldState) (item stock.Item, id string) {
	r.t.Helper()
	item, h := r.hold()
	of := "/reservations/" + h.ID
	switch state {
	case stock.Paying:
		r.backend(of+"/payment", "")
	case stock.Confirmed:
		r.backend(of+"/confirmation", `{"reference": "first-`+h.ID+`"}`)
	case stock.Released:
		r.customer(of+"/release", `{"reason": "changed-mind"}`)
	case stock.Expired:
		r.overdue(h.ID)
		r.sweep()
	}
	if now := r.look(h.ID); now.State != state {
		r.t.Fatalf("the reservation is %s, want %s", now.State, state)
	}
	return item, h.ID
}

func (r *reservingShop) look(id string) publicReservation {
	r.t.Helper()
	return r.ask(http.MethodGet, ReservationsPath+"/"+id, "", "Staff", "payments").reservation(r.t)
}

// measures wants these lines among the metrics.
func (r *reservingShop) measures(lines ...string) {
	r.t.Helper()
	got := r.metrics()
	for _, line := range lines {
		if !strings.Contains(got, "\n"+line+"\n") {
			r.t.Errorf("the metrics have no %q", line)
		}
	}
}

func (r *reservingShop) metrics() string {
	got, err := send(context.Background(), http.MethodGet, r.internal+"/metrics", "", nil)
	if err != nil {
		r.t.Error(err)
	}
	return got.body
}

func (r *reservingShop) paid(reference string) (p stock.Payment) {
	r.t.Helper()
	if got := r.ask(http.MethodGet, apiPrefix+"/payments/"+reference, "", "Staff", "payments"); got.status != http.StatusNotFound {
		decode(r.t, got, &p)
	}
	return p
}

// TestEveryAnswerOfEveryRequest has all requests in all states. A state after an arrow is what the reservation
// is then.
func TestEveryAnswerOfEveryRequest(t *testing.T) {
	r := openReserving(t, func(cfg *Config) { cfg.Reservations.Open, cfg.Limit = 100, 1000 })
	other, otherID := r.in(stock.Confirmed)
	_ = other
	for _, table := range []struct{ state, extension, release, payment, confirmation, same, stolen, failure string }{
		{"held", "200", "200 → released", "200 → paying", "200 → confirmed", "", "409 reference-in-use", "200"},
		{"paying", "409 payment-under-way", "200 → released", "200", "200 → confirmed", "", "409 reference-in-use", "200 → released"},
		{"confirmed", "409 already-confirmed", "409 already-confirmed", "409 already-confirmed", "409 payment-must-be-returned", "200", "409 reference-in-use", "200"},
		{"released", "410 reservation-ended", "200", "410 reservation-ended", "410 payment-must-be-returned", "", "409 reference-in-use", "200"},
		{"expired", "410 reservation-ended", "410 reservation-ended", "410 reservation-ended", "410 payment-must-be-returned", "", "409 reference-in-use", "200"},
	} {
		for request, want := range map[string]string{
			"extension": table.extension, "release": table.release, "payment": table.payment, "confirmation": table.confirmation,
			"confirmation by the same": table.same, "confirmation by a stolen one": table.stolen, "failure": table.failure,
		} {
			if want == "" {
				continue
			}
			t.Run(table.state+"/"+request, func(t *testing.T) {
				item, id := r.in(stock.HoldState(table.state))
				path, _, _ := strings.Cut(request, " ")
				send, reference := r.backend, "new-"+id
				body := ""
				switch request {
				case "extension":
					send, body = r.customer, `{"seconds": 60}`
				case "release":
					send, body = r.customer, `{"reason": "changed-mind"}`
				case "confirmation by the same":
					reference = "first-" + id
				case "confirmation by a stolen one":
					reference = "first-" + otherID
				}
				if path == "confirmation" {
					body = `{"reference": "` + reference + `"}`
				}
				want, becomes, moves := strings.Cut(want, " → ")
				if !moves {
					becomes = table.state
				}
				first := ""
				for try := range 2 { // a repeat is answered alike, except where the first changed the state or was the last
					got := send("/reservations/"+id+"/"+path, body)
					if try == 0 {
						first = got.body
					} else if path == "confirmation" && got.status == http.StatusOK && got.body != first {
						t.Errorf("again: %s, want %s", got.body, first)
					}
					is := strings.TrimSpace(fmt.Sprint(got.status, " ", got.problem()))
					if try == 0 && is != want {
						t.Fatalf("%s %s, want %s", is, got.body, want)
					}
					if again := map[string]string{"held/extension": "409 already-extended"}[table.state+"/"+request]; try == 1 && again != "" && is != again {
						t.Errorf("again: %s, want %s", is, again)
					} else if try == 1 && again == "" && is != want {
						t.Errorf("again: %s %s, want %s", is, got.body, want)
					}
				}
				now := r.look(id)
				units := int64(0)
				if now.State == stock.Released || now.State == stock.Expired {
					units = 1
				}
				if string(now.State) != becomes || r.left(item) != units {
					t.Errorf("it is %s with %d units left, want %s with %d", now.State, r.left(item), becomes, units)
				}
				if last := now.History[len(now.History)-1].State; last != now.State {
					t.Errorf("its history ends as %s, and it is %s", last, now.State)
				}
				if p := r.paid(reference); path == "confirmation" && strings.HasSuffix(want, "must-be-returned") && (p.State != stock.ToReturn || p.Hold != id) {
					t.Errorf("the payment is %+v, want to-return for %s", p, id)
				}
			})
		}
	}
}

// TestOnlyTheBackendSpeaksOfPayments asks each of its requests at the public listener.
func TestOnlyTheBackendSpeaksOfPayments(t *testing.T) {
	r := openReserving(t, nil)
	_, h := r.hold()
	for _, path := range []string{"/reservations/" + h.ID + "/payment", "/reservations/" + h.ID + "/confirmation", "/reservations/" + h.ID + "/failure", "/payments/ref/return"} {
		got, err := send(t.Context(), http.MethodPost, r.url+apiPrefix+path, `{"reference": "ref"}`, http.Header{"Content-Type": {"application/json"}, "Customer": {"ann"}, "Staff": {"payments"}})
		if err != nil || got.problem() != "not-found" {
			t.Errorf("POST %s for a customer: %d %s %v, want 404", path, got.status, got.body, err)
		}
	}
	if got := r.get(apiPrefix + "/payments/ref"); got.problem() != "not-found" {
		t.Errorf("GET of a payment for a customer: %d, want 404", got.status)
	}
}

func TestMoneyOfAReturnedPayment(t *testing.T) {
	r := openReserving(t, nil)
	_, id := r.in(stock.Expired)
	of := "/reservations/" + id + "/confirmation"
	r.backend(of, `{"reference": "late"}`)
	if p := r.paid("late"); p.State != stock.ToReturn || p.Reason != "late" {
		t.Fatalf("late money is %+v", p)
	}
	for range 2 {
		if got := r.backend("/payments/late/return", ""); got.status != 200 || r.paid("late").State != stock.Returned {
			t.Errorf("return: %d %s", got.status, got.body)
		}
	}
	if got := r.backend(of, `{"reference": "late"}`); got.problem() != "payment-must-be-returned" || got.status != 410 || !strings.Contains(got.body, alreadyReturned) {
		t.Errorf("confirmed by money that was given back: %d %s", got.status, got.body)
	}
	_, paid := r.in(stock.Confirmed)
	if got := r.backend("/payments/first-"+paid+"/return", ""); got.problem() != "payment-taken" {
		t.Errorf("return of money that paid an order: %d %s", got.status, got.body)
	}
	order := *r.look(paid).OrderID
	r.backend("/orders/"+order+"/cancellation", "")
	if p := r.paid("first-" + paid); p.State != stock.ToReturn || p.Reason != "cancelled" {
		t.Errorf("the money of a cancelled order is %+v", p)
	}
	if got := r.backend("/reservations/"+paid+"/confirmation", `{"reference": "first-`+paid+`"}`); got.problem() != "payment-must-be-returned" {
		t.Errorf("its notice comes again: %d %s", got.status, got.body)
	}
	if got := r.backend("/payments/first-"+paid+"/return", ""); got.status != 200 {
		t.Errorf("return of the money of a cancelled order: %d %s", got.status, got.body)
	}
	if got := r.backend("/reservations/"+paid+"/confirmation", `{"reference": "first-`+paid+`"}`); got.status != 409 || !strings.Contains(got.body, alreadyReturned) {
		t.Errorf("its notice comes once more: %d %s", got.status, got.body)
	}
	for n := range stock.MaxReferences - 1 {
		if got := r.backend(of, fmt.Sprintf(`{"reference": "late-%d"}`, n)); got.status != 410 {
			t.Errorf("payment %d: %d %s", n, got.status, got.body)
		}
	}
	if got := r.backend(of, `{"reference": "one-too-many"}`); got.problem() != "too-many-references" || r.paid("one-too-many").State != "" {
		t.Errorf("one payment too many: %d %s", got.status, got.body)
	}
	if !strings.Contains(r.log.String(), "one-too-many") {
		t.Error("a payment that was not recorded is not in the log")
	}
	r.measures(`shop_payments_refused_total{recorded="yes"} 9`, `shop_payments_refused_total{recorded="no"} 1`)
	for _, reference := range []string{"Capital", "capital"} {
		_, id := r.in(stock.Held)
		if got := r.backend("/reservations/"+id+"/confirmation", `{"reference": "`+reference+`"}`); got.status != http.StatusOK {
			t.Errorf("references are compared by bytes, and %s is answered with %d %s", reference, got.status, got.body)
		}
	}
}

// TestMoneyOfLinesThatTwoWritersCancelled: at nodes of a cluster, no cancellation was the last.
func TestMoneyOfLinesThatTwoWritersCancelled(t *testing.T) {
	r := openReserving(t, nil)
	_, id := r.in(stock.Confirmed)
	if _, err := r.store.Pool().ExecContext(t.Context(), "UPDATE orders SET cancelled_at = UTC_TIMESTAMP(6)"); err != nil {
		t.Fatal(err)
	}
	if got := r.backend("/payments/first-"+id+"/return", ""); got.status != http.StatusOK {
		t.Errorf("return: %d %s", got.status, got.body)
	}
	if p := r.paid("first-" + id); p.State != stock.Returned || p.Reason != "cancelled" {
		t.Errorf("the money is %+v", p)
	}
}

// TestTheLastLineReturnsTheMoney has both lines of a paid order cancelled at once, again and again.
func TestTheLastLineReturnsTheMoney(t *testing.T) {
	r := openReserving(t, func(cfg *Config) { cfg.Limit = 1000 })
	for n := range 10 {
		items := []stock.Item{r.item(1), r.item(1)}
		body := fmt.Sprintf(`{"lines": [{"item_id": %d, "quantity": 1}, {"item_id": %d, "quantity": 1}], "seconds": 60}`, items[0].ID, items[1].ID)
		h := r.reserve("ann", r.key(), body).reservation(t)
		reference := fmt.Sprint("both-", n)
		paid := r.backend("/reservations/"+h.ID+"/confirmation", `{"reference": "`+reference+`"}`).reservation(t)
		var both sync.WaitGroup
		for _, item := range items {
			both.Go(func() {
				if got := r.backend(fmt.Sprintf("/orders/%s/lines/%d/cancellation", *paid.OrderID, item.ID), ""); got.status != http.StatusOK {
					t.Errorf("cancel a line: %d %s", got.status, got.body)
				}
			})
		}
		both.Wait()
		if p := r.paid(reference); p.State != stock.ToReturn || r.left(items[0])+r.left(items[1]) != 2 {
			t.Fatalf("the payment is %+v", p)
		}
	}
}

// TestAnExtensionIntoThePast holds nothing, and is not the one that there may be.
func TestAnExtensionIntoThePast(t *testing.T) {
	r := openReserving(t, nil)
	_, h := r.hold()
	r.overdue(h.ID)
	for _, ended := range []bool{false, true} {
		got := r.customer("/reservations/"+h.ID+"/extension", `{"seconds": 60}`)
		if now := r.look(h.ID); got.problem() != "reservation-ended" || (now.State == stock.Expired) != ended || len(now.History) != map[bool]int{false: 1, true: 2}[ended] {
			t.Errorf("extended when it was overdue: %d %s, and it is %+v", got.status, got.body, now)
		}
		r.sweep()
	}
}

// TestNothingIsHeldForLongerThanTheTerms, which are 15 minutes: not at once, and not with an extension.
func TestNothingIsHeldForLongerThanTheTerms(t *testing.T) {
	r := openReserving(t, nil)
	item := r.item(2)
	reserve := func(seconds string) answer {
		return r.reserve("ann", r.key(), strings.Replace(one(item), "60", seconds, 1))
	}
	if got := reserve("901"); got.status != http.StatusUnprocessableEntity || got.problem() != "invalid" {
		t.Errorf("reserved for 901 s: %d %s", got.status, got.body)
	}
	reserve("900").reservation(t)
	h := reserve("600").reservation(t)
	for _, extended := range []struct{ seconds, status, by time.Duration }{{301, http.StatusUnprocessableEntity, 0}, {300, http.StatusOK, 300}} {
		got := r.customer("/reservations/"+h.ID+"/extension", fmt.Sprintf(`{"seconds": %d}`, extended.seconds))
		if by := r.look(h.ID).HeldUntil.Sub(h.HeldUntil); got.status != int(extended.status) || by != extended.by*time.Second {
			t.Errorf("extended by %d s: %d %s, and it is held for %s longer", extended.seconds, got.status, got.body, by)
		}
	}
}

func TestLatePaymentsCanBeTaken(t *testing.T) {
	r := openReserving(t, func(cfg *Config) { cfg.Reservations.TakeLate = true })
	item, id := r.in(stock.Expired)
	first := r.backend("/reservations/"+id+"/confirmation", `{"reference": "late"}`).reservation(t)
	again := r.backend("/reservations/"+id+"/confirmation", `{"reference": "late"}`).reservation(t)
	if first.State != stock.Confirmed || first.InsteadOf == nil || *first.InsteadOf != id || first.ID == id || again.ID != first.ID || r.left(item) != 0 {
		t.Errorf("late: %+v, again %s, %d units left; want a new one that is confirmed", first, again.ID, r.left(item))
	}
	if r.look(id).State != stock.Expired {
		t.Error("the ended reservation has changed")
	}
	if got := r.backend("/reservations/"+id+"/confirmation", `{"reference": "another"}`); got.status != 410 || r.left(item) != 0 {
		t.Errorf("late, and nothing is free: %d %s", got.status, got.body)
	}
	if p := r.paid("another"); p.State != stock.ToReturn {
		t.Errorf("money that was not taken is %+v", p)
	}
	if _, err := r.store.Restock(t.Context(), stock.Author{Subject: "staff", IdempotencyKey: "five-more"}, item.ID, 5); err != nil {
		t.Fatal(err)
	}
	if got := r.backend("/reservations/"+id+"/confirmation", `{"reference": "second"}`); got.status != 410 || r.paid("second").Reason != "second" || r.left(item) != 5 {
		t.Errorf("paid late a second time: %d %s, %+v", got.status, got.body, r.paid("second"))
	}
	if got := r.backend("/reservations/"+first.ID+"/confirmation", `{"reference": "late"}`).reservation(t); got.ID != first.ID {
		t.Errorf("the new one's own payment: %+v", got)
	}
	r.backend("/orders/"+*first.OrderID+"/cancellation", "")
	for _, of := range []string{id, first.ID} { // it has paid, and did not come late
		if got := r.backend("/reservations/"+of+"/confirmation", `{"reference": "late"}`); got.status != 409 || got.problem() != "payment-must-be-returned" {
			t.Errorf("the notice of a cancelled order: %d %s", got.status, got.body)
		}
	}
	if got := r.backend("/reservations/"+id+"/confirmation", `{"reference": "third"}`); got.status != 410 || r.paid("third").Reason != "second" || r.left(item) != 6 {
		t.Errorf("paid once more after the order was cancelled: %d %s, %+v", got.status, got.body, r.paid("third"))
	}
	if orders, _ := r.store.ItemOrders(t.Context(), item.ID); len(orders) != 1 {
		t.Errorf("%d orders, want 1", len(orders))
	}
	r.measures(`shop_reservations_total{state="confirmed"} 1`)
}

// TestNoMoneyIsMissingInTheLog has more of it at once than the log takes of other records.
func TestNoMoneyIsMissingInTheLog(t *testing.T) {
	r := openReserving(t, nil)
	_, id := r.in(stock.Expired)
	references := []string{"of-a-lost-one", "of-no-id", "pay.123"}
	r.backend("/reservations/"+uuid.NewString()+"/confirmation", `{"reference": "of-a-lost-one"}`)
	r.backend("/reservations/"+id+"x/confirmation", `{"reference": "of-no-id"}`)
	r.backend("/reservations/"+id+"/confirmation", `{"reference": "pay.123"}`)
	for n := range 3 * logBurst {
		references = append(references, fmt.Sprintf("late-%03d", n))
		r.backend("/reservations/"+id+"/confirmation", fmt.Sprintf(`{"reference": "late-%03d"}`, n))
	}
	for _, reference := range references {
		if !strings.Contains(r.log.String(), reference) {
			t.Errorf("%s is not in the log", reference)
		}
	}
}

// TestALogOfErrorsHasMoneyThatIsInNoTable, and not what is in one.
func TestALogOfErrorsHasMoneyThatIsInNoTable(t *testing.T) {
	log := &logBuffer{}
	r := openReserving(t, func(cfg *Config) {
		cfg.Log = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelError}))
	})
	_, id := r.in(stock.Expired)
	r.backend("/reservations/"+uuid.NewString()+"/confirmation", `{"reference": "of-a-lost-one"}`)
	r.backend("/reservations/"+id+"/confirmation", `{"reference": "late"}`)
	if got := log.String(); !strings.Contains(got, "of-a-lost-one") || strings.Contains(got, `"late"`) {
		t.Errorf("the log has %q, want the money of a reservation that is lost", got)
	}
}

// TestABusyShopRefusesNoMoney: the confirmation is sent again.
func TestABusyShopRefusesNoMoney(t *testing.T) {
	r := openReserving(t, nil)
	_, id := r.in(stock.Paying)
	if err := r.payments.Acquire(t.Context(), r.maxReads()); err != nil {
		t.Fatal(err)
	}
	if got := r.backend("/reservations/"+id+"/confirmation", `{"reference": "busy"}`); got.problem() != "busy" {
		t.Errorf("%d %s", got.status, got.body)
	}
	r.payments.Release(r.maxReads())
	r.measures(`shop_payments_refused_total{recorded="yes"} 0`, `shop_payments_refused_total{recorded="no"} 0`)
	if strings.Contains(r.log.String(), "a payment was not taken") {
		t.Error("the log has it among the payments that were not taken")
	}
}

// TestChangesTakeNoPlaceOfAPayment: they wait for rows of items, and payments for none.
func TestChangesTakeNoPlaceOfAPayment(t *testing.T) {
	r := openReserving(t, nil)
	_, id := r.in(stock.Held)
	if err := r.changes.Acquire(t.Context(), r.maxReads()); err != nil {
		t.Fatal(err)
	}
	defer r.changes.Release(r.maxReads())
	for _, request := range [][2]string{{"payment", ""}, {"confirmation", `{"reference": "apart"}`}} {
		if got := r.backend("/reservations/"+id+"/"+request[0], request[1]); got.status != http.StatusOK {
			t.Errorf("%s: %d %s", request[0], got.status, got.body)
		}
	}
	if p := r.paid("apart"); p.State != stock.Taken {
		t.Errorf("the payment is %+v, want it taken", p)
	}
	if got := r.backend("/payments/apart/return", ""); got.problem() != "payment-taken" {
		t.Errorf("its return: %d %s", got.status, got.body)
	}
	r.measures(fmt.Sprint("shop_requests_in_flight_max ", r.MaxInFlight+3*r.maxReads()))
}

// TestAReservationIsMadeOnceUnderItsKey has twenty customers' requests under one key at once.
func TestAReservationIsMadeOnceUnderItsKey(t *testing.T) {
	r := openReserving(t, nil)
	item := r.item(10)
	ids := sync.Map{}
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if got := r.reserve("ann", "one-key", one(item)); got.status == http.StatusCreated {
				ids.Store(got.reservation(t).ID, true)
			} else if got.problem() != "unavailable" && got.problem() != "conflict" {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
	group.Wait()
	n := 0
	ids.Range(func(any, any) bool { n++; return true })
	if n != 1 || r.left(item) != 9 {
		t.Errorf("%d reservations, %d units left, want 1 and 9", n, r.left(item))
	}
	if got := r.reserve("ann", "one-key", strings.Replace(one(item), `"quantity": 1`, `"quantity": 2`, 1)); got.problem() != "idempotency-key-reused" {
		t.Errorf("another wish under the key: %d %s", got.status, got.body)
	}
	if got := r.ask(http.MethodPost, ReservationsPath, one(item), "Customer", "ann"); got.problem() != "malformed" {
		t.Errorf("without a key: %d %s", got.status, got.body)
	}
	if got := r.reserve("ann", "later", strings.Replace(one(item), "60", "86400", 1)); got.problem() != "invalid" {
		t.Errorf("a day: %d %s", got.status, got.body)
	}
}

// TestTheBoundsOfACustomer has many requests at once: no bound is passed.
func TestTheBoundsOfACustomer(t *testing.T) {
	r := openReserving(t, func(cfg *Config) { cfg.Limit = 3 })
	item, others := r.item(100), make([]stock.Item, 8)
	for i := range others { // no two wait for the same row
		others[i] = r.item(1)
	}
	at := func(n int, body func(int) string) map[string]int {
		var mu sync.Mutex
		got := map[string]int{}
		var group sync.WaitGroup
		for i := range n {
			group.Go(func() {
				a := r.reserve("ann", r.key(), body(i))
				mu.Lock()
				defer mu.Unlock()
				got[fmt.Sprint(a.status, " ", a.problem())]++
			})
		}
		group.Wait()
		return got
	}
	r.ask(http.MethodPost, ordersPath(item), `{"quantity": 1}`, "Customer", "ann") // it counts, too
	if got := at(8, func(int) string { return one(item) }); got["201 "] != 2 || got["409 limit-reached"] != 6 {
		t.Errorf("with one of three units bought: %v, want 2 reservations", got)
	}
	if got := r.ask(http.MethodPost, ordersPath(item), `{"quantity": 1}`, "Customer", "ann"); got.problem() != "limit-reached" {
		t.Errorf("a sale beside what is held: %d %s", got.status, got.body)
	}
	if got := at(8, func(i int) string { return one(others[i]) }); got["201 "] != 3 || got["409 too-many-reservations"] != 5 {
		t.Errorf("with two of five reservations open: %v, want 3 more", got)
	}
}

// TestARefusedReservationNamesItsLines has each line refused for a reason of its own, beside one that could be had.
func TestARefusedReservationNamesItsLines(t *testing.T) {
	r := openReserving(t, func(cfg *Config) { cfg.Limit = 2 })
	held, _ := r.hold()
	sold, limited, free := r.item(0), r.item(10), r.item(10)
	got := r.reserve("ben", r.key(), fmt.Sprintf(`{"seconds": 60, "lines": [{"item_id": %d, "quantity": 1}, {"item_id": %d, "quantity": 1}, {"item_id": %d, "quantity": 3}, {"item_id": %d, "quantity": 1}]}`,
		held.ID, sold.ID, limited.ID, free.ID))
	var body problemBody
	decode(t, got, &body)
	want := []refusedLine{{held.ID, "/problems/held-by-others"}, {sold.ID, "/problems/sold-out"}, {limited.ID, "/problems/limit-reached"}}
	if got.status != http.StatusConflict || !slices.Equal(body.Lines, want) || r.left(free) != 10 || r.left(limited) != 10 {
		t.Errorf("%d %s, want 409 for %v", got.status, got.body, want)
	}
}

// TestTheMostUnitsCountWhatIsHeld restocks and corrects an item that has all units that it may have, one of them held.
func TestTheMostUnitsCountWhatIsHeld(t *testing.T) {
	r := openReserving(t, nil)
	item := r.item(stock.MaxStock)
	r.reserve("ann", r.key(), one(item)).reservation(t)
	change := func(method, path, body string) string {
		return r.ask(method, ItemPath(item.ID)+path, body, "Staff", "ann", IdempotencyKeyHeader, r.key(), "If-Match", "*").problem()
	}
	for body, want := range map[string]string{fmt.Sprintf(`{"stock": %d}`, stock.MaxStock): "too-many-units", fmt.Sprintf(`{"stock": %d}`, stock.MaxStock-1): ""} {
		if got := change(http.MethodPut, "/stock", body); got != want {
			t.Errorf("a correction to %s: %q, want %q", body, got, want)
		}
	}
	if got := change(http.MethodPost, "/restocks", `{"quantity": 1}`); got != "too-many-units" {
		t.Errorf("a restock: %q, want too-many-units", got)
	}
}

func TestOthersHoldTheUnits(t *testing.T) {
	for _, name := range []string{"conditional", "batched", "for-update", "optimistic", "fenced-relative"} {
		t.Run(name, func(t *testing.T) {
			r := openReserving(t, func(cfg *Config) { cfg.Strategy = byName(t, name) })
			item, h := r.hold()
			ben := func() answer { return r.ask(http.MethodPost, ordersPath(item), `{"quantity": 1}`, "Customer", "ben") }
			for range 2 {
				if got := ben(); got.problem() != "held-by-others" || got.header.Get("Retry-After") == "" {
					t.Errorf("a sale of what is held: %d %s", got.status, got.body)
				}
			}
			if got := r.reserve("ben", r.key(), one(item)); got.problem() != "held-by-others" {
				t.Errorf("a reservation of what is held: %d %s", got.status, got.body)
			}
			var shown stock.Item
			if got := r.get(apiPrefix + "/items?after=" + fmt.Sprint(item.ID)); got.status != 200 || strings.Contains(got.body, "null") {
				t.Errorf("the page behind the last item: %s", got.body)
			}
			if decode(t, r.get(ItemPath(item.ID)), &shown); shown.Held != 1 || shown.Stock != 0 {
				t.Errorf("the item is shown as %+v, want one unit held", shown)
			}
			r.overdue(h.ID)
			if got := ben(); got.status != http.StatusCreated { // the sale itself ends what is overdue
				t.Errorf("a sale of what was held too long: %d %s", got.status, got.body)
			}
			r.measures(`shop_reservations_total{state="expired"} 1`)
			for range 2 {
				if got := ben(); got.problem() != "sold-out" {
					t.Errorf("a sale of what is sold: %d %s", got.status, got.body)
				}
			}
			if got := r.backend("/reservations/"+h.ID+"/confirmation", `{"reference": "late"}`); got.status != http.StatusGone {
				t.Errorf("a payment for what was sold: %d %s", got.status, got.body)
			}
		})
	}
}

// TestARefusedReservationWaitsForNoRow of an item, once it or a sale was refused. Another transaction has the row.
func TestARefusedReservationWaitsForNoRow(t *testing.T) {
	for _, name := range []string{"conditional", "batched"} {
		t.Run(name, func(t *testing.T) {
			r := openReserving(t, func(cfg *Config) { cfg.Strategy = byName(t, name) })
			held, h := r.hold()
			out := r.item(0)
			reserve := func(item stock.Item) answer { return r.reserve("ben", r.key(), one(item)) }
			buy := func(item stock.Item) answer {
				return r.ask(http.MethodPost, ordersPath(item), `{"quantity": 1}`, "Customer", "ben")
			}
			want := func(got answer, problem string) {
				t.Helper()
				if got.problem() != problem {
					t.Errorf("%d %s, want %s", got.status, got.body, problem)
				}
			}
			want(reserve(held), "held-by-others")
			want(buy(out), "sold-out")
			tx, err := r.store.Pool().BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			if _, err := tx.ExecContext(t.Context(), "UPDATE items SET version = version + 1"); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				want(reserve(held), "held-by-others")
				want(buy(held), "held-by-others")
				want(reserve(out), "sold-out")
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			if got := r.customer("/reservations/"+h.ID+"/release", `{"reason": "changed-mind"}`); got.status != http.StatusOK {
				t.Fatalf("released: %d %s", got.status, got.body)
			}
			if got := reserve(held); got.status != http.StatusCreated {
				t.Errorf("what is free again: %d %s", got.status, got.body)
			}
		})
	}
}

// TestASaleEndsNoPayment: its units are held until the sweep, or a release.
func TestASaleEndsNoPayment(t *testing.T) {
	r := openReserving(t, nil)
	item, id := r.in(stock.Paying)
	r.overdue(id)
	if got := r.ask(http.MethodPost, ordersPath(item), `{"quantity": 1}`, "Customer", "ben"); got.problem() != "held-by-others" {
		t.Errorf("a sale beside a payment: %d %s", got.status, got.body)
	}
	if got := r.backend("/reservations/"+id+"/confirmation", `{"reference": "just-in-time"}`); got.status != http.StatusOK {
		t.Errorf("a payment that no shop has ended: %d %s", got.status, got.body)
	}
}

// TestACustomersOwnOverdueReservationIsNotCounted when it buys, and when it reserves again.
func TestACustomersOwnOverdueReservationIsNotCounted(t *testing.T) {
	r := openReserving(t, func(cfg *Config) { cfg.Limit, cfg.Reservations.Open = 1, 1 })
	item, other := r.item(5), r.item(5)
	r.overdue(r.reserve("ann", r.key(), one(item)).reservation(t).ID)
	if got := r.ask(http.MethodPost, ordersPath(item), `{"quantity": 1}`, "Customer", "ann"); got.status != http.StatusCreated {
		t.Errorf("a sale behind the own reservation: %d %s", got.status, got.body)
	}
	for range 2 { // first the bound of units, and then that of reservations
		r.overdue(r.reserve("ben", r.key(), one(item)).reservation(t).ID)
	}
	if got := r.reserve("ben", r.key(), one(other)); got.status != http.StatusCreated {
		t.Errorf("a reservation of another item: %d %s", got.status, got.body)
	}
}

// TestServeEndsBesideALockedRow: a sweep waits for the row of an item, for longer than the shop may take.
func TestServeEndsBesideALockedRow(t *testing.T) {
	const locked = time.Minute
	store := stocktest.OpenAt(t, stocktest.Database(t)+"?innodb_lock_wait_timeout=60&readTimeout=2m", stock.WithExtraTime(locked))
	item := stocktest.Item(t, store, 1)
	if _, err := store.Hold(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 1, Subject: "ann", IdempotencyKey: "k", Holds: true}, 0, stock.Terms{Open: 1}); err != nil {
		t.Fatal(err)
	}
	tx, err := store.Pool().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), "UPDATE items SET version = version + 1"); err != nil {
		t.Fatal(err)
	}
	r := openReserving(t, func(cfg *Config) {
		cfg.Deps.Store, cfg.DrainTimeout, cfg.SweepInterval = store, time.Second, time.Millisecond
	})
	stocktest.AwaitLockWait(t, store) // the sweep
	began := time.Now()
	r.end()
	if err := <-r.ended; err != nil {
		t.Errorf("Serve returned %v", err)
	}
	if took := time.Since(began); took > locked/2 {
		t.Errorf("Serve returned after %s, want before the row's lock", took)
	}
}

// TestShopsEndWhatIsOverdue has two shops sweep at once. More is overdue than their first rounds end, and the next look is
// in an hour.
func TestShopsEndWhatIsOverdue(t *testing.T) {
	const overdue = 2*sweepBatch + 30
	dsn, shops := stocktest.Database(t), [2]*reservingShop{}
	for i := range shops {
		shops[i] = openReserving(t, func(cfg *Config) { cfg.Deps.Store, cfg.SweepInterval = stocktest.OpenAt(t, dsn), time.Hour })
	}
	store := stocktest.OpenAt(t, dsn)
	item, err := store.CreateItem(t.Context(), "item", overdue)
	for i := 0; i < overdue && err == nil; i++ {
		_, err = store.Hold(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 1, Subject: "ann", IdempotencyKey: fmt.Sprint(i), Holds: true}, 0, stock.Terms{Open: overdue})
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var sweeping sync.WaitGroup
	for _, shop := range shops {
		sweeping.Go(func() { shop.endReservations(ctx) })
	}
	testserver.Await(t, "all units to come back", func() bool {
		now, err := store.Read(t.Context(), item.ID)
		return err == nil && now.Stock == overdue
	})
	held, _, err := store.CountHeld(t.Context())
	if err != nil || len(held) != 0 {
		t.Errorf("%+v is held, %v", held, err)
	}
	stop()
	sweeping.Wait()
	const expired = `shop_reservations_total{state="expired"}`
	if first, second := shops[0].scrape()[expired], shops[1].scrape()[expired]; first+second != overdue {
		t.Errorf("the shops count %v and %v that have expired, want %d", first, second, overdue)
	}
}

// TestOneReservationThatCannotBeEndedKeepsNoOther: its history has the next entry already, as where tables were restored at
// different ages. It is the longest overdue, more are than one round ends, and the next look is in an hour.
func TestOneReservationThatCannotBeEndedKeepsNoOther(t *testing.T) {
	store := stocktest.Open(t)
	item, err := store.CreateItem(t.Context(), "item", sweepBatch+10)
	var holds []stock.Hold
	for i := 0; i < sweepBatch+10 && err == nil; i++ {
		var h stock.Hold
		h, err = store.Hold(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 1, Subject: "ann", IdempotencyKey: fmt.Sprint(i), Holds: true}, 0, stock.Terms{Open: sweepBatch + 10})
		holds = append(holds, h)
	}
	if err == nil {
		_, err = store.Pool().ExecContext(t.Context(), "INSERT INTO hold_history (hold_id, n, was, becomes, at, done_by, reason, request_id) VALUES (?, 2, 'held', 'held', UTC_TIMESTAMP(6), '', '', '')", holds[0].ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := openReserving(t, func(cfg *Config) { cfg.Deps.Store, cfg.SweepInterval = store, time.Hour })
	testserver.Await(t, "the others to be ended", func() bool {
		now, err := store.Read(t.Context(), item.ID)
		return err == nil && now.Stock == sweepBatch+9
	})
	if want := fmt.Sprintf("end overdue reservations [%d]", holds[0].ID); !strings.Contains(r.log.String(), want) {
		t.Errorf("the log does not name the one: %q", want)
	}
}

// TestAShopThatCannotSweep still counts what is held, and says which job fails.
func TestAShopThatCannotSweep(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, 1)
	if _, err := store.Hold(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 1, Subject: "ann", IdempotencyKey: "k", Holds: true}, 0, stock.Terms{Open: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Pool().ExecContext(t.Context(), "RENAME TABLE hold_history TO hidden"); err != nil {
		t.Fatal(err)
	}
	r := openReserving(t, func(cfg *Config) {
		cfg.Deps.Store, cfg.SweepInterval, cfg.KeyInterval, cfg.Reservations.Kept = store, time.Millisecond, time.Millisecond, time.Hour
		cfg.PingInterval = time.Hour // a probe would find the same, and the shop would not become ready
	})
	testserver.Await(t, "the metrics", func() bool {
		got := r.metrics()
		return strings.Contains(got, `shop_reservations_live{state="held"} 1`+"\n") && strings.Contains(got, `shop_clearing_failures_total{what="reservations"}`) &&
			!strings.Contains(got, `shop_clearing_failures_total{what="reservations"} 0`) && !strings.Contains(got, "shop_reservation_sweep_failures_total 0")
	})
	r.measures(`shop_clearing_failures_total{what="order-keys"} 0`, `shop_clearing_failures_total{what="reservation-keys"} 0`)
	late := func() float64 { return r.scrape()["shop_reservation_lateness_seconds"] }
	if late() <= 0 {
		t.Errorf("what it cannot end is %v s late", late())
	}
	if _, err := store.Pool().ExecContext(t.Context(), "RENAME TABLE holds TO hidden_too"); err != nil {
		t.Fatal(err)
	}
	testserver.Await(t, "the lateness to be unknown", func() bool { return math.IsNaN(late()) })
	testserver.Await(t, "what is held to be unknown", func() bool {
		series := r.scrape()
		return math.IsNaN(series[`shop_reservations_live{state="held"}`]) && math.IsNaN(series[`shop_reserved_units{state="paying"}`]) && math.IsNaN(series["shop_payments_to_return"])
	})
	if !strings.Contains(r.log.String(), `"what":"reservations"`) {
		t.Error("the log does not say what was not cleared")
	}
}

// TestAShopThatMakesNoReservations says so, and answers repeats.
func TestAShopThatMakesNoReservations(t *testing.T) {
	r := openReserving(t, func(cfg *Config) { cfg.Reservations.Open = 0 })
	item := r.item(1)
	if got := r.reserve("ann", r.key(), one(item)); got.problem() != "too-many-reservations" || !strings.Contains(got.body, "no new ones") {
		t.Errorf("%d %s", got.status, got.body)
	}
	r.measures(`shop_reservations_live{state="held"} NaN`, `shop_reserved_units{state="paying"} NaN`, "shop_payments_to_return NaN", "shop_reservation_lateness_seconds NaN") // nobody has counted
}

func TestReservationsOfACustomer(t *testing.T) {
	r := openReserving(t, nil)
	item := r.item(10)
	var ids []string
	for range 3 {
		ids = append(ids, r.reserve("ann", r.key(), one(item)).reservation(t).ID)
	}
	var page reservationList
	decode(t, r.ask(http.MethodGet, ReservationsPath+"?limit=2", "", "Customer", "ann"), &page)
	if len(page.Reservations) != 2 || page.Reservations[0].ID != ids[2] || page.Next == "" {
		t.Fatalf("the first page is %+v", page)
	}
	next := page.Next
	page = reservationList{}
	decode(t, r.ask(http.MethodGet, next, "", "Customer", "ann"), &page)
	if len(page.Reservations) != 1 || page.Reservations[0].ID != ids[0] || len(page.Reservations[0].Lines) != 1 {
		t.Errorf("the second page is %+v", page)
	}
	for _, path := range []string{"", "/release"} {
		method, body := http.MethodGet, ""
		if path != "" {
			method, body = http.MethodPost, `{"reason": "mine"}`
		}
		if got := r.ask(method, ReservationsPath+"/"+ids[0]+path, body, "Customer", "ben"); got.problem() != "not-found" {
			t.Errorf("another's reservation%s: %d %s", path, got.status, got.body)
		}
	}
	if got := r.ask(http.MethodGet, ReservationsPath+"/"+ids[0], "", "Customer", "ann").reservation(t); len(got.History) != 1 || got.History[0].By != "" {
		t.Errorf("the history is shown as %+v", got.History)
	}
	if got := r.ask(http.MethodGet, ReservationsPath, ""); got.problem() != "malformed" {
		t.Errorf("nobody's reservations: %d %s", got.status, got.body)
	}
}

func TestReservationsThatAreForgotten(t *testing.T) {
	r := openReserving(t, nil)
	item := r.item(1)
	id := r.reserve("ann", "k", one(item)).reservation(t).ID
	r.customer("/reservations/"+id+"/release", `{"reason": "changed-mind"}`)
	if n, err := r.store.ForgetHolds(t.Context(), 0, 100); err != nil || n != 1 {
		t.Fatalf("forgotten: %d %v", n, err)
	}
	if now := r.look(id); now.State != stock.Released || len(now.Lines)+len(now.History) != 0 {
		t.Errorf("a forgotten one is shown as %+v", now)
	}
	if again := r.reserve("ann", "k", one(item)); again.header.Get(ReplayedHeader) != "true" || again.reservation(t).ID != id { // its key was not cleared yet
		t.Errorf("a repeat of a forgotten one: %d %s", again.status, again.body)
	}
	if got := r.ask(http.MethodGet, ReservationsPath+"/"+id, "", "Customer", "ann"); got.problem() != "not-found" {
		t.Errorf("its customer still has it: %d", got.status)
	}
	if got := r.backend("/reservations/"+id+"/confirmation", `{"reference": "very-late"}`); got.status != http.StatusGone || r.paid("very-late").State != stock.ToReturn {
		t.Errorf("money for a forgotten one: %d %s", got.status, got.body)
	}
}

func TestAShopMustBeFitForReservations(t *testing.T) {
	locks, client := openLocks(t, redisURL(t))
	defer client.Close()
	for want, change := range map[string]func(*Config){
		"":                       func(*Config) {},
		"needs --subject-header": func(cfg *Config) { cfg.Subject, cfg.Limit = nil, 0 },
		"no --anonymous":         func(cfg *Config) { cfg.Anonymous = true },
		"needs --limit":          func(cfg *Config) { cfg.Limit = 0 },
		"needs --staff-addr":     func(cfg *Config) { cfg.Staff = nil },
		"writes over":            func(cfg *Config) { cfg.Strategy = byName(t, "fenced") },
		"less than --key-ttl":    func(cfg *Config) { cfg.Reservations.Longest = time.Hour },
		"at least --key-ttl":     func(cfg *Config) { cfg.Reservations.Kept = time.Minute },
		"printable ASCII":        func(cfg *Config) { cfg.Name = "店-1" }, // no column of reservations has it
		"which is 0s: a key has": func(cfg *Config) { cfg.Reservations.Kept, cfg.KeyTTL = time.Hour, 0 },
	} {
		cfg := Config{Name: "shop", Strategy: byName(t, "conditional"), Subject: SubjectHeader("Customer"), Staff: SubjectHeader("Staff"),
			Limit: 1, KeyTTL: time.Hour, Reservations: &Reservations{}, Deps: strategy.Deps{Locks: locks}}
		change(&cfg)
		if err := cfg.check(); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	without := open(t, nil)
	if got := without.get(ReservationsPath); got.problem() != "not-found" {
		t.Errorf("a shop without reservations: %d %s", got.status, got.body)
	}
}

func TestTheContractHasTheBoundsOfReservations(t *testing.T) {
	doc, err := readContract()
	if err != nil {
		t.Fatal(err)
	}
	for _, schema := range []string{"NewReservation", "Extension"} {
		if got := doc.Components.Schemas[schema].Value.Properties["seconds"].Value.Max; got == nil || *got != maxSeconds {
			t.Errorf("openapi.yaml: the maximum of %s.seconds is not %d", schema, maxSeconds)
		}
	}
	if got := doc.Components.Parameters["Reference"].Value.Schema.Value.Pattern; got != wordPattern {
		t.Errorf("openapi.yaml has the pattern %q\nthe shop has %q", got, wordPattern)
	}
}
