package service

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/seen"
)

// Reply is how a customer was answered.
type Reply struct {
	Outcome load.Outcome // Sold, SoldOut, Busy, Unknown for no answer, Failed for one that the description does not know
	Status  int
	Body    string // its beginning
	Err     error
}

// String is the reply in a few words.
func (r Reply) String() string {
	switch r.Outcome {
	case load.Unknown:
		return load.NoAnswer
	case load.Failed:
		return strings.TrimSuffix(fmt.Sprintf("%d: %s", r.Status, r.Body), ": ")
	}
	return string(r.Outcome)
}

// maxBody bounds what is read of an answer.
const maxBody = 1 << 20

func (p *Process) call(ctx context.Context, r Request, values map[string]string) (status int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, r.Method, p.URL+fill(r.Path, values), strings.NewReader(fill(r.Body, values)))
	if err != nil {
		return 0, nil, err
	}
	if r.Body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.Headers {
		if name = http.CanonicalHeaderKey(name); strings.HasSuffix(name, "Idempotency-Key") {
			name = strings.ToLower(name) // net/http sends a request with that header and no body again, and does not know it so
		}
		request.Header[name] = []string{fill(value, values)}
	}
	request.GetBody = nil // never sent twice
	answer, err := p.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(io.LimitReader(answer.Body, maxBody))
	return answer.StatusCode, body, err
}

// Sale is what one customer buys: one unit.
type Sale struct {
	Item     int64
	Customer string
	Key      string
	// Accepted is called, if it is not nil, when the service has answered that it will decide later.
	Accepted func()
}

func (o Sale) values() map[string]string {
	return map[string]string{"item": strconv.FormatInt(o.Item, 10), "customer": o.Customer, "key": o.Key, "quantity": "1"}
}

// Buy has a customer buy at a process. Where the service answers that it will decide later, it waits for that.
func (s *Service) Buy(ctx context.Context, p *Process, o Sale) Reply {
	status, body, err := p.call(ctx, s.File.Buy, o.values())
	r := Reply{Outcome: load.Unknown, Status: status, Body: brief(body), Err: err}
	if err == nil {
		r.Outcome = s.File.outcome(status, body)
	}
	if r.Outcome == accepted {
		if o.Accepted != nil {
			o.Accepted()
		}
		return s.awaitOutcome(ctx, o, body)
	}
	return r
}

// awaitOutcome asks for the outcome of a sale until that is one, at a process at which nobody buys.
func (s *Service) awaitOutcome(ctx context.Context, o Sale, body []byte) Reply {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	values := o.values()
	if found := fields(body, s.File.Outcome.Value); len(found) > 0 {
		values["id"] = found[0]
	} else if strings.Contains(fmt.Sprint(s.File.Outcome), "{id}") {
		return Reply{Outcome: load.Unknown, Body: brief(body), Err: s.File.mistake("outcome.value", "the answer of an accepted sale has no %q, which {id} stands for: %s", s.File.Outcome.Value, brief(body))}
	}
	for {
		status, body, err := s.counter.call(ctx, s.File.Outcome, values)
		if err == nil {
			r := Reply{Outcome: s.File.outcome(status, body), Status: status, Body: brief(body)}
			if r.Outcome == load.Sold || r.Outcome == load.SoldOut || r.Outcome == load.Busy {
				return r
			}
		}
		if seen.Pause(ctx, askAgain) != nil {
			return Reply{Outcome: load.Unknown, Status: status, Body: brief(body), Err: fmt.Errorf("the outcome of an accepted sale is not known after %s: the last answer was %d", callLimit, status)}
		}
	}
}

// firstCustomer is no number of an item or a port. Those from here on fit into an INT of MySQL.
const firstCustomer = 5_000_000

// NewSale is the sale of another customer, who is a number. Its key is its own.
func (s *Service) NewSale(item int64) Sale {
	customer := strconv.FormatInt(firstCustomer+s.buys.Add(1), 10)
	return Sale{Item: item, Customer: customer, Key: "try-" + customer}
}

// NewItem is another item where each run can have its own, and else the only one.
func (s *Service) NewItem() int64 {
	if !s.File.Fresh() {
		return firstItem
	}
	return s.items.Add(1)
}

// answerWords are the words for answers, in the order in which they are looked for: what names a field comes before
// what goes by the status alone. No two of those have one status: see [File.defaults].
var answerWords = []load.Outcome{load.Unknown, load.Sold, load.SoldOut, load.Busy, accepted}

// accepted is the outcome of an answer that leaves it open.
const accepted load.Outcome = "accepted"

func (f *File) outcome(status int, body []byte) load.Outcome {
	for _, byField := range []bool{true, false} {
		for _, word := range answerWords {
			a := f.Answers[word]
			switch named := slices.Contains(a.Status, status); {
			case (a.Field != "") != byField || !named && len(a.Status) > 0:
			case !byField && named:
				return word
			case byField && slices.ContainsFunc(fields(body, a.Field), func(v string) bool { return v == a.Value || a.Value == "" }):
				return word
			}
		}
	}
	return load.Failed
}

// fields are the values of a field of a JSON text, such as orders.customer: of each element where there is an
// array on the way.
func fields(body []byte, path string) []string {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil {
		return nil
	}
	return walk(v, strings.Split(path, "."))
}

func walk(v any, path []string) (found []string) {
	switch v := v.(type) {
	case []any:
		for _, each := range v {
			found = append(found, walk(each, path)...)
		}
	case map[string]any:
		if len(path) > 0 {
			if inner, ok := v[path[0]]; ok {
				return walk(inner, path[1:])
			}
		}
	case nil:
	default:
		if len(path) == 0 {
			return []string{fmt.Sprint(v)}
		}
	}
	return found
}

const briefly = 200

func brief(body []byte) string {
	text := strings.Join(strings.Fields(string(body)), " ")
	if len(text) > briefly {
		return strings.ToValidUTF8(text[:briefly], "") + "…"
	}
	return text
}
