package live

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
)

func units(n int64) *int64 { return &n }

func point(at float64, shop, request string, p sale.Point) Entry {
	return Entry{AtMS: at, Kind: Point, Shop: shop, Request: request, Point: p}
}

// clashOf is a cell in which the second sale enters while the first has lost its lease.
func clashOf() *record {
	return &record{
		scene: scene{Shops: []string{"shop 1", "shop 2"}, Servers: []string{explain.Primary}, LeaseMS: 100, Initial: 1, Exclusive: true, Rows: 1},
		entries: []Entry{
			{AtMS: 1, Kind: Sent, Shop: "shop 1", Request: "7-1"},
			{AtMS: 2, Kind: Lock, Server: explain.Primary, Key: "stock:7", What: "set"},
			{AtMS: 2, Kind: Lock, Server: explain.Primary, Key: "stock:7", What: "expire"},
			point(3, "shop 1", "7-1", sale.Acquired), point(4, "shop 1", "7-1", sale.Read),
			{AtMS: 5, Kind: Point, Shop: "shop 1", Request: "7-1", Point: sale.Write, Fault: "write stop 150ms"},
			{AtMS: 6, Kind: Sent, Shop: "shop 2", Request: "7-2"},
			{AtMS: 102, Kind: Lock, Server: explain.Primary, Key: "stock:7", What: "expired"},
			{AtMS: 103, Kind: Lock, Server: explain.Primary, Key: "stock:7", What: "set"},
			{AtMS: 103, Kind: Lock, Server: explain.Primary, Key: "stock:7", What: "expire"},
			point(104, "shop 2", "7-2", sale.Acquired), point(105, "shop 2", "7-2", sale.Read),
			point(110, "shop 2", "7-2", sale.Written),
			{AtMS: 110, Kind: Ordered, Shop: "shop 2", Request: "7-2", Order: 1, Read: units(1), Stock: units(0)},
			point(111, "shop 2", "7-2", sale.Released),
			{AtMS: 112, Kind: Lock, Server: explain.Primary, Key: "stock:7", What: "del"},
			point(155, "shop 1", "7-1", sale.Written),
			{AtMS: 155, Kind: Ordered, Shop: "shop 1", Request: "7-1", Order: 2, Read: units(1), Stock: units(0)},
			point(156, "shop 1", "7-1", sale.Released),
			{AtMS: 160, Kind: Answered, Shop: "shop 1", Request: "7-1", Outcome: "sold", LatencyMS: 159},
		},
	}
}

// TestTheDecisiveMoment is that of the order, whatever else happened at the same time.
func TestTheDecisiveMoment(t *testing.T) {
	began := time.Now()
	at := began.Add(10 * time.Millisecond)
	of := &record{entries: reader{began: began}.all(explain.Evidence{
		Events:  []labmode.Event{{Time: at, Shop: "shop 1", Request: "7-1", Point: sale.Written}},
		Orders:  []stock.Order{{ID: 1, Shop: "shop 1", RequestID: "7-1"}},
		Changes: []explain.Change{{Time: at, What: "del"}, {Time: at.Add(10 * time.Microsecond), What: "set"}},
	}, nil)}
	for _, moment := range []float64{9.99, 10, 10.01} {
		shown := newReplay(of, trial.Result{Explanation: &explain.Explanation{StartMS: moment - 2, Moment: &explain.Moment{AtMS: 2}}})
		var current Kind
		for _, e := range shown.Entries {
			if e.AtMS <= shown.Decisive {
				current = e.Kind
			}
		}
		if current != Ordered {
			t.Errorf("decided at %v ms: at %v ms of %+v the entry is a %q, want the order", moment, shown.Decisive, shown.Entries, current)
		}
	}
}

// shape finds a shape of a class that begins and ends at these times.
func shape(drawn, class, from, width string) bool {
	return regexp.MustCompile(`<rect class="` + class + `" x="` + from + `" y="[\d.]+" width="` + width + `"`).MatchString(drawn)
}

func TestTheReplayOfAClash(t *testing.T) {
	drawn := clashOf().replay(verdict.Oversold).Take()
	for _, tt := range []struct{ what, class, from, width string }{
		{"the first sale, that overwrote", "in clash", "3", "153"},
		{"the second sale", "in", "104", "7"},
		{"both at once", "both", "104", "7"},
		{"the pause", "slow", "5", "150"},
		{"the wait of the second sale", "wait", "6", "98"},
		{"the first lease", "held odd", "2", "100"},
		{"the second lease", "held", "103", "9"},
		{"one unit sold too many, to the end", "over", "155", "5"},
	} {
		if !shape(drawn, tt.class, tt.from, tt.width) {
			t.Errorf("%s is not drawn: no %s from %s for %s ms in\n%s", tt.what, tt.class, tt.from, tt.width, strings.ReplaceAll(drawn, "/>", "/>\n"))
		}
	}
	if !strings.Contains(drawn, `class="lease" d="M2 `) {
		t.Error("the lease does not run down")
	}
	held := clashOf().replay(verdict.Held).Take()
	if strings.Contains(held, "clash") || strings.Contains(held, `class="both"`) {
		t.Error("a cell that held shows a clash")
	}
}

// TestUnitsThatAreKeptElsewhere: what their orders have read and written is not the stock. Two sales at once are no failure, unless
// they sum up rows.
func TestUnitsThatAreKeptElsewhere(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	for _, tt := range []struct {
		strategy string
		left     string // after each order
		both     bool
	}{{"redis-async", "1 0 -1", false}, {"reservation-unchecked", "1 0 0", false}, {"ledger", "1 0 -1", true}, {"none", "0 1 0", true}} {
		pair, err := unserved(t).pair(cellName{tt.strategy, "redis-restart"})
		if err != nil {
			t.Fatal(err)
		}
		w := newWatcher(1, pair, trial.Options{Stock: 2}, 2)
		w.begin(trial.Attempt{Began: began})
		e := explain.Evidence{Declared: pair.Strategy, InitialStock: 2, Began: began, Ended: at(50)}
		for i, read := range []int64{1, 2, 1} {
			shop, request := explain.ShopName(i%2), fmt.Sprintf("7-%d", i+1)
			e.Events = append(e.Events, labmode.Event{Time: at(i), Shop: shop, Request: request, Point: sale.Read}, labmode.Event{Time: at(10 + i), Shop: shop, Request: request, Point: sale.Written})
			e.Orders = append(e.Orders, stock.Order{ID: uint64(i + 1), Shop: shop, RequestID: request, StockRead: read, StockWritten: read - 1})
		}
		w.saw(e)
		r := newReplay(w.record(), trial.Result{Verdict: verdict.Oversold})
		var left []string
		for _, e := range r.Entries {
			if e.Kind == Ordered {
				left = append(left, fmt.Sprint(*cmp.Or(e.Left, e.Stock)))
			}
		}
		if got := strings.Join(left, " "); got != tt.left {
			t.Errorf("%s has %s left after its orders, want %s", tt.strategy, got, tt.left)
		}
		if clash := strings.Contains(r.Shapes, "clash"); clash != (tt.strategy == "none") {
			t.Errorf("%s: a sale that overwrote another is drawn is %t", tt.strategy, clash)
		}
		if both := strings.Contains(r.Shapes, `class="both"`); both != tt.both || r.Exclusive != tt.both {
			t.Errorf("%s: two at once are a failure is %t and %t, want %t", tt.strategy, both, r.Exclusive, tt.both)
		}
		if drawn := `<rect class="left" x="11" .* data-t="` + left[1] + `"`; !regexp.MustCompile(drawn).MatchString(strings.ReplaceAll(r.Shapes, "/>", "/>\n")) {
			t.Errorf("%s: behind the second order, another stock than %s is drawn", tt.strategy, left[1])
		}
	}
}

// TestWhatIsDrawnLive is drawn again when the cell has ended: as it comes, nothing is drawn twice.
func TestWhatIsDrawnLive(t *testing.T) {
	r := clashOf()
	d := newPicture(r.scene)
	var pieces string
	for _, e := range r.entries {
		d.saw(e)
		pieces += d.Take()
	}
	if n := strings.Count(pieces, `class="in"`); n != 2 {
		t.Errorf("%d sections are drawn, want 2", n)
	}
	inside, waiting, lock := d.now()
	if !slices.Equal(inside, []int{0, 0}) || !slices.Equal(waiting, []int{0, 0}) || lock.Held {
		t.Errorf("at the end %v are inside, %v wait, and the lock is %+v", inside, waiting, lock)
	}
	d = newPicture(r.scene)
	for _, e := range r.entries[:12] {
		d.saw(e)
	}
	inside, _, lock = d.now()
	if !slices.Equal(inside, []int{1, 1}) || !lock.Held || lock.FromMS != 103 || !lock.Expires {
		t.Errorf("in the middle %v are inside, and the lock is %+v", inside, lock)
	}
	if lasting := d.Lasting(107); !shape(lasting, "both", "104", "3") || !shape(lasting, "in", "3", "104") {
		t.Errorf("what lasts is not drawn: %s", lasting)
	}
}

// TestTheRecordIsOrdered: entries of all sources come by time, and an order when its sale wrote it.
func TestTheRecordIsOrdered(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	e := explain.Evidence{
		Ended:         at(50),
		Events:        []labmode.Event{{Time: at(20), Shop: "shop 1", Request: "7-1", Point: sale.Written}, {Time: at(10), Shop: "shop 1", Request: "7-1", Point: sale.Acquired}},
		Changes:       []explain.Change{{Time: at(9), Server: explain.Primary, Key: "stock:7", What: "set"}},
		Interventions: []explain.Intervention{{From: at(5), Until: at(30), Shop: "shop 2", What: "redis-cut"}},
		Requests:      []explain.Request{{ID: "7-1", Shop: "shop 1", Sent: at(1), Answered: at(25), Outcome: "sold"}},
		Orders:        []stock.Order{{ID: 3, RequestID: "7-1", CreatedAt: at(40), StockRead: 5, StockWritten: 4}},
	}
	looks := []Entry{{AtMS: 15, Kind: Looked, Stock: units(5), Sold: units(0)}}
	for _, singles := range []bool{true, false} {
		var kinds []string
		for _, entry := range (reader{began: began, singles: singles}).all(e, looks) {
			kinds = append(kinds, string(entry.Kind))
			if entry.Kind == Ordered && entry.AtMS != 20.001 { // next after the point
				t.Errorf("the order is at %v ms, want 20.001: when its sale noted it", entry.AtMS)
			}
		}
		want := "sent done lock point look point order answered done"
		if !singles {
			want = "done lock point look point order done"
		}
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("with single requests %v: %s, want %s", singles, got, want)
		}
	}
}
