package shop

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"stocklock/internal/fault"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// FuzzOrder: a body is refused, or it is an order of 1 or more and nothing else.
func FuzzOrder(f *testing.F) {
	for _, body := range []string{`{"quantity":1}`, `{"quantity": 9223372036854775808}`, `{"quantity":1.5}`, `{"quantity":1}{}`, `[1]`, `null`,
		`{"Quantity":3}`, "{\"quantity\":2}\n", `{"quantity":1,"quantity":2}`, ``} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		quantity, err := readQuantity(http.MaxBytesReader(nil, nopCloser{strings.NewReader(string(body))}, maxBody))
		if err != nil {
			if _, ok := errors.AsType[refusal](err); !ok {
				t.Errorf("the error is no refusal: %v", err)
			}
			return
		}
		var order map[string]json.Number
		if err := json.Unmarshal(body, &order); err != nil || len(body) > maxBody || quantity < 1 {
			t.Fatalf("accepted %q as %d", body, quantity)
		}
		for field, number := range order {
			if !strings.EqualFold(field, "quantity") {
				t.Errorf("accepted %q with the field %q", body, field)
			}
			if len(order) == 1 && number.String() != strconv.FormatInt(quantity, 10) {
				t.Errorf("read %q as %d", body, quantity)
			}
		}
	})
}

type nopCloser struct{ *strings.Reader }

func (nopCloser) Close() error { return nil }

// FuzzHeaders: whatever the headers are, what is taken from them fits the database.
func FuzzHeaders(f *testing.F) {
	f.Add("id", "key", "run", "none", "read sleep 1s", "1")
	f.Add("ä b", `"key"`, strings.Repeat("r", 65), "no", "read kill", "")
	f.Add("", `"`, "", "", "written stop 61s", "2")
	f.Fuzz(func(t *testing.T, id, key, run, by, spec, nested string) {
		request := httptest.NewRequest(http.MethodPost, "/", nil)
		for name, value := range map[string]string{requestIDHeader: id, labStrategyHeader: by, labRunHeader: run, labFaultHeader: spec, labNestedHeader: nested} {
			request.Header.Set(name, value)
		}
		c, _ := gin.CreateTestContext(httptest.NewRecorder())
		c.Request = request
		identify(c)
		if got := requestID(c); !isLabel(got, maxRequestIDLength) || isLabel(id, maxRequestIDLength) && got != id {
			t.Errorf("the request id %q became %q", id, got)
		}
		if got, err := readIdempotencyKey(key); err == nil && got != "" && !isLabel(got, maxKeyLength) {
			t.Errorf("the key %q became %q", key, got)
		}
		asked, err := readExperiment(c, strategy.All()[0])
		if err != nil {
			if _, ok := errors.AsType[refusal](err); !ok {
				t.Errorf("the error is no refusal: %v", err)
			}
			return
		}
		if asked.run != "" && !isLabel(asked.run, maxRunLength) || asked.fault.For > fault.MaxDuration || asked.strategy.Name == "" {
			t.Errorf("accepted the experiment %+v", asked)
		}
	})
}

// FuzzSecrets: however broken a DSN or URL is, the error does not show the password.
func FuzzSecrets(f *testing.F) {
	f.Add("shop:", "@tcp(db:3306)/stocklock", "redis://:", "@cache:6379/0")
	f.Add("shop:", "/stocklock", "redis://shop:", "")
	f.Add("", "", "rediss://cache:6379/", "?master_name=main&password=")
	f.Add("mysql://shop:", "@db/stocklock", "redis://cache?cluster=true&addr=", "%zz")
	f.Add("a:b@tcp(", ")/x?tls=", "redis://x/", "/y")
	f.Fuzz(func(t *testing.T, beforeDSN, afterDSN, beforeURL, afterURL string) {
		const password = "g3h31m"
		if store, err := stock.Open(beforeDSN + password + afterDSN); err == nil {
			_ = store.Close()
		} else if strings.Contains(err.Error(), password) {
			t.Errorf("the error shows the password: %v", err)
		}
		for _, secret := range []string{password, url.QueryEscape("%" + password)} {
			if _, err := parseRedisURL(beforeURL + secret + afterURL); err == nil {
				continue // opening it would look the host up
			}
			if _, err := OpenRedis(beforeURL + secret + afterURL); err == nil || strings.Contains(err.Error(), password) {
				t.Errorf("the error shows the password: %v", err)
			}
		}
	})
}
