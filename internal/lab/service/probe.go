package service

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/wire"
)

// Probe is what one sale, and one refusal, have shown of a service.
type Probe struct {
	Sold, SoldOut           []schedule.Sent
	SoldReply, SoldOutReply Reply
	// Background are the requests that the idle service sent, in the form of [Shape].
	Background []string
	// polls are those of Background that named the sale before them, and came again and again.
	polls []string
	// everySale are the requests that came until each of the probe's customers was answered, and did not name the sale.
	everySale []string
	selected  bool // the first sale has selected a database of Redis
	// AfterAnswer says that the service sends requests of a sale when it has answered.
	AfterAnswer bool
	// Unseen says what of the service the lab cannot see, with the way out. If it has anything, the
	// service is not stepped.
	Unseen []string
	// Judgement is held, or what one customer after the other was enough to show. Reason says more.
	Judgement verdict.Judgement
	Reason    string
}

const (
	idleWatch   = time.Second            // for which an idle service is watched
	afterAnswer = 300 * time.Millisecond // seen silence after an answer that ends a sale, unless the count says that it goes on
	polled      = 3                      // so often a text comes meanwhile that belongs to none, although it names one
	orderEvery  = 50 * time.Millisecond  // between looks for an order that is written late
)

// LongWatch is how long an idle service is watched that has sent what may belong to no sale. Tests make it shorter before
// they start one.
var LongWatch = 10 * time.Second

// Probe has one customer buy at each process, and another one find the item sold out. An error is a [Mistake]
// where the description does not fit.
func (s *Service) Probe(ctx context.Context) (*Probe, error) {
	p := &Probe{Judgement: verdict.Judgement{Kind: verdict.Held}}
	kept := &recorder{customers: len(s.Processes)}
	if _, _, err := s.Learn(ctx, p, idleWatch, Sale{}); err != nil {
		return nil, err
	}
	defer s.Watch(wire.Answers(kept.note))()
	for i, process := range s.Processes {
		if err := s.probeAt(ctx, p, kept, process, i == 0); err != nil || p.Judgement.Kind != verdict.Held {
			return p, err
		}
	}
	p.Unseen = s.unseen(p)
	return p, nil
}

// Learn watches the idle service, and adds to Background what it sends, or waits for as a worker does that blocks on a
// list. It says whether there was anything new. Nobody may buy meanwhile. What a sale still sends that was answered is no
// background, and is returned: it names the sale, or comes before the service was still. The zero value is for no sale.
func (s *Service) Learn(ctx context.Context, p *Probe, long time.Duration, answered Sale) (late []*wire.Exchange, more bool, err error) {
	kept := &recorder{customers: len(s.Processes)}
	defer s.Watch(wire.Answers(kept.note))()
	return s.learn(ctx, p, kept, long, answered)
}

// learn is Learn by a recorder that watches already, so that it hears of what is under way.
func (s *Service) learn(ctx context.Context, p *Probe, kept *recorder, long time.Duration, answered Sale) (late []*wire.Exchange, more bool, err error) {
	heard, quiet := time.Now(), seen.Quiet{}
	for began := heard; answered.Item != 0 && err == nil && time.Since(began) < stillLimit && quiet.Until(heard, time.Now(), countEvery) < stillFor; {
		err = seen.Pause(ctx, countEvery)
		for _, x := range kept.take() {
			if late = append(late, x); !x.EndsTransaction() && !s.IsBackground(p, x.Text, answered) {
				heard = time.Now()
			}
		}
	}
	err = cmp.Or(err, seen.Pause(ctx, long))
	s.learned.Lock()
	times := map[string]int{}
	for _, x := range append(kept.take(), kept.among(s.relay.underWay())...) {
		shape := Shape(x.Text)
		if times[x.Text]++; s.names(answered, x.Text) {
			if late = append(late, x); times[x.Text] != polled || p.SoldReply.Outcome != "" { // beside others it may wait for them
				continue
			}
			p.polls = append(p.polls, shape)
		}
		if !x.EndsTransaction() && !slices.Contains(p.Background, shape) {
			p.Background, more = append(p.Background, shape), true
		}
	}
	s.learned.Unlock()
	of := map[*wire.Conn]bool{} // the connections that had something of the sale
	return slices.DeleteFunc(late, func(x *wire.Exchange) bool {
		of[x.Conn] = of[x.Conn] || !x.EndsTransaction() && !s.IsBackground(p, x.Text, answered)
		return x.EndsTransaction() && !of[x.Conn]
	}), more, err
}

func (s *Service) probeAt(ctx context.Context, p *Probe, kept *recorder, process *Process, first bool) error {
	item, database := s.NewItem(), 0
	if process.Redis != nil {
		database = process.Redis.Database()
	}
	if err := s.SetStock(ctx, item, 1); err != nil {
		return err
	}
	if err := s.isReset(ctx, item); err != nil {
		return err
	}
	kept.take()
	buyer := s.NewSale(item)
	reply := s.Buy(ctx, process, buyer)
	if first && !p.selected && process.Redis != nil && process.Redis.Database() != database { // only now: the stock is in another one
		p.selected = true
		return s.probeAt(ctx, p, kept, process, first)
	}
	answered := time.Now()
	sent := kept.take()
	had, err := s.Orders(ctx, item) // before a worker can write it
	if err != nil {
		return err
	}
	var late []*wire.Exchange
	goesOn := func(from int) bool { // a transaction can have begun before the answer
		seen := slices.Concat(sent, late)
		return len(s.foreground(p, seen, buyer)) > len(s.foreground(p, seen[:len(sent)+from], buyer))
	}
	heard, quiet, limit := answered, seen.Quiet{}, time.Second
	if first {
		limit = stillLimit
	}
	for quiet.Until(heard, time.Now(), orderEvery) < afterAnswer && time.Since(answered) < limit {
		if err := seen.Pause(ctx, orderEvery); err != nil {
			return err
		}
		more := kept.take()
		if late = append(late, more...); goesOn(len(late) - len(more)) {
			heard = time.Now()
		}
	}
	if reply.Outcome == load.Busy { // a machine that is slow is no mistake of the description
		return fmt.Errorf("an item with one unit was ordered by one customer alone, and the answer was %s: nothing can be said on a machine that is so slow", reply)
	}
	if err := s.mustBe(process, reply, load.Sold, "an item with one unit was ordered"); err != nil {
		return err
	}
	listened := time.Now()
	left, orders, now, err := s.awaitSale(ctx, item)
	took, now := afterAnswer+time.Since(listened), now && len(had) > 0
	if err != nil {
		return err
	}
	late = append(late, kept.take()...)
	if first && (!now && len(orders) > 0 || goesOn(0)) { // is it of the sale, or does it come without one, too?
		later, _, err := s.learn(ctx, p, kept, LongWatch, buyer)
		if err != nil {
			return err
		}
		late = append(late, later...)
	}
	if p.AfterAnswer = p.AfterAnswer || !now || goesOn(0); p.AfterAnswer {
		s.patience = max(s.patience, s.File.Settle, lateFactor*took)
	}
	if first {
		p.Sold, p.SoldReply = s.foreground(p, slices.Concat(sent, late), buyer), reply
	}
	var unnamed []string
	for _, x := range sent {
		if shape := Shape(x.Text); (x.Server == wire.Redis || ofTables.MatchString(shape)) && !s.names(buyer, x.Text) && !slices.Contains(unnamed, shape) && (first || slices.Contains(p.everySale, shape)) {
			unnamed = append(unnamed, shape)
		}
	}
	p.everySale = unnamed
	switch {
	case len(orders) == 0:
		p.Judgement.Kind = verdict.Lied
		p.Reason = fmt.Sprintf("customer %s was answered as sold (%d), and stock.orders found no order: the service lies, or that query is wrong", buyer.Customer, reply.Status)
		return nil
	case len(orders) > 1:
		p.Judgement.Kind = verdict.Twice
		p.Reason = fmt.Sprintf("one customer has bought once, and stock.orders found %d orders", len(orders))
		return nil
	case orders[0].Customer != buyer.Customer:
		return s.File.mistake("stock.orders", "orders found customer %q of an order that %q made: want {customer} of buy in its first column", orders[0].Customer, buyer.Customer)
	case left != 0:
		p.Judgement.Kind = verdict.Unbalanced
		p.Reason = fmt.Sprintf("one of one unit is sold, and %s found %d", leftField, left)
		return nil
	}
	second := s.NewSale(item)
	reply = s.Buy(ctx, process, second)
	if p.AfterAnswer {
		if _, err := s.Still(ctx, item, func(left int64, orders []Order) bool { return left+int64(len(orders)) == 1 }); err != nil {
			return err
		}
	}
	if first {
		p.SoldOut, p.SoldOutReply = s.foreground(p, kept.take(), second), reply
	}
	switch {
	case reply.Outcome == load.Sold:
		if orders, err = s.Orders(ctx, item); err != nil {
			return err
		}
		p.Judgement.Kind = verdict.Lied
		if len(orders) > 1 {
			p.Judgement.Kind = verdict.Oversold
		}
		p.Reason = fmt.Sprintf("the only unit of an item was sold, and the next customer, who came afterwards, was answered as sold, too (%d): stock.orders found %d", reply.Status, len(orders))
		return nil
	case schedule.Failed(reply.String()):
		p.Judgement.Kind = verdict.Crashed
		p.Reason = fmt.Sprintf("an item without a unit was ordered, and the answer was %s%s", reply, process.said())
		return nil
	}
	return s.mustBe(process, reply, load.SoldOut, "an item without a unit was ordered")
}

// awaitSale counts an item of which the only unit was sold until it is in the orders, and no more left: a worker can be late.
// It says whether it was at once.
func (s *Service) awaitSale(ctx context.Context, item int64) (left int64, orders []Order, now bool, err error) {
	for began, looks := time.Now(), 0; ; looks++ {
		left, orders, err = s.Counts(ctx, item)
		if err != nil || left == 0 && len(orders) > 0 || time.Since(began) > max(stillLimit, s.File.Settle) {
			return left, orders, looks == 0, err
		}
		if err := seen.Pause(ctx, orderEvery); err != nil {
			return 0, nil, false, err
		}
	}
}

// isReset wants what was set: one unit and no order.
func (s *Service) isReset(ctx context.Context, item int64) error {
	left, orders, err := s.Counts(ctx, item)
	switch {
	case err != nil:
		return err
	case left != 1:
		return s.File.mistake(leftField, "the stock was set to 1, and this found %d", left)
	case len(orders) > 0:
		return s.File.mistake("stock.set", "the stock was set, and orders still found %d of before: set must remove them, or the item must be {item}", len(orders))
	}
	return nil
}

// mustBe wants an answer of a customer who comes alone.
func (s *Service) mustBe(process *Process, got Reply, want load.Outcome, when string) error {
	switch {
	case got.Outcome != load.Unknown && process.Process != nil && !process.Alive(): // another program has taken its port
		return fmt.Errorf("%s, and %s has ended%s", when, process.Name, process.said())
	case got.Outcome == want:
		return nil
	case got.Outcome == load.Unknown:
		return fmt.Errorf("%s, and no answer came: %w%s", when, got.Err, process.said())
	case got.Outcome == load.Failed && got.Status >= 500:
		return fmt.Errorf("%s, and the service failed with %s%s", when, got, process.said())
	case got.Outcome == load.Failed:
		return s.File.mistake("answers", "%s, and the answer was %s: no line of answers reads so", when, got)
	}
	return s.File.mistake(cmp.Or(map[bool]string{true: "answers." + string(got.Outcome)}[s.File.Answers[got.Outcome].Field != ""], "answers"),
		"%s, and the answer %s reads as %s: want %s", when, strings.TrimSuffix(fmt.Sprintf("%d: %s", got.Status, got.Body), ": "), got.Outcome, want)
}

// said is the end of what a process printed.
func (p *Process) said() string {
	if p.Process == nil {
		return ""
	}
	if tail := p.LogTail(); tail != "" {
		return "; it printed:\n" + tail
	}
	return ""
}

// unseen says what the lab cannot see of a service that was probed.
func (s *Service) unseen(p *Probe) (all []string) {
	if s.File.URL != "" {
		return []string{"a service that runs already talks to its own servers: describe its start to have its requests seen"}
	}
	for _, process := range s.Processes {
		for _, proxy := range []*wire.Proxy{process.Redis, process.MySQL} {
			for _, what := range proxy.Unseen() {
				if !slices.Contains(all, what) {
					all = append(all, what)
				}
			}
		}
	}
	switch first := s.Processes[0]; {
	case len(p.Sold) == 0:
		what := "nothing of a sale came to {redis} or {mysql}: the service ignores its environment, or keeps its stock elsewhere"
		if first.Redis.Accepted()+first.MySQL.Accepted() > 0 {
			what = "connections came, and nothing of a sale: the service sells on connections around {redis} and {mysql}, or without them"
		}
		all = append(all, what)
	case s.File.Stock.LeftRedis == "" && !slices.ContainsFunc(p.Sold, func(step schedule.Sent) bool { return step.Server == wire.MySQL }):
		all = append(all, "a sale sends requests to {redis}, and nothing of it to {mysql}: if its stock is in Redis, count that with left_redis; no other store is seen")
	}
	return all
}

// foreground are the requests that belong to a sale. The end of a transaction that had none of them is none.
func (s *Service) foreground(p *Probe, all []*wire.Exchange, sale Sale) (steps []schedule.Sent) {
	inSale := map[*wire.Conn]bool{}
	for _, x := range all {
		is := !s.IsBackground(p, x.Text, sale) && (!x.EndsTransaction() || inSale[x.Conn])
		if is {
			steps = append(steps, schedule.Sent{Server: x.Server, Sent: x.Text, Answer: x.Answer, Source: x.Source})
		}
		inSale[x.Conn] = x.Open && (is || inSale[x.Conn])
	}
	return steps
}

var varying = regexp.MustCompile(`'[^']*'|"[^"]*"|\b[0-9a-fA-F-]*\d[0-9a-fA-F-]*\b`)

// Shape is a request without the values that differ from time to time: numbers, and texts in quotes. The digest of
// a script stays.
func Shape(text string) string {
	command, rest, _ := strings.Cut(text, " ")
	if command != "EVALSHA" {
		return varying.ReplaceAllString(text, "?")
	}
	sha, rest, _ := strings.Cut(rest, " ")
	return command + " " + sha + " " + varying.ReplaceAllString(rest, "?")
}

// IsBackground says whether a request that came while a customer buys belongs to no sale. What the idle service has sent,
// and names the sale now, is the sale's, unless it is a poll for each sale.
func (s *Service) IsBackground(p *Probe, text string, sale Sale) bool {
	s.learned.RLock()
	defer s.learned.RUnlock()
	shape := Shape(text)
	return slices.Contains(p.Background, shape) && !s.names(sale, text) || slices.Contains(p.polls, shape) || slices.ContainsFunc(s.File.background, func(r *regexp.Regexp) bool { return r.MatchString(text) })
}

// names says whether a request has the customer of a sale, its key or its item as a word. An item that each run sells
// says nothing.
func (s *Service) names(sale Sale, text string) bool {
	words := []string{sale.Customer, sale.Key}
	if sale.Item != 0 && s.File.Fresh() {
		words = append(words, strconv.FormatInt(sale.Item, 10))
	}
	return slices.ContainsFunc(words, func(word string) bool {
		return word != "" && regexp.MustCompile(`\b`+regexp.QuoteMeta(word)+`\b`).MatchString(text)
	})
}

// Sends says whether a sale, or a refusal, has sent a request of a form of [Shape].
func (p *Probe) Sends(shape string) bool {
	is := func(step schedule.Sent) bool { return Shape(step.Sent) == shape }
	return slices.ContainsFunc(p.Sold, is) || slices.ContainsFunc(p.SoldOut, is)
}

// Repeats is how often the sale has sent a request that is such a one, and was answered as the last of those: a poll ends
// with another answer.
func (p *Probe) Repeats(such func(sent string) bool) int {
	answers, last := map[string]int{}, ""
	for _, step := range p.Sold {
		if such(step.Sent) {
			last = step.Answer
			answers[last]++
		}
	}
	return answers[last]
}

// Beyond says what of a sale was not attacked, although it sends it: a lease in a row of SQL, or as a deadline in a value of
// Redis, ends by a clock that the lab does not move, and a procedure, or a text of several statements, is one request.
func (p *Probe) Beyond() (all []string) {
	var statements, raw []string
	for _, s := range p.Sold {
		if s.Server == wire.MySQL {
			raw = append(raw, s.Sent)
			statements = append(statements, varying.ReplaceAllString(s.Sent, "?"))
		}
	}
	if slices.ContainsFunc(statements, rowLease.MatchString) || setsWhatItCompares(raw, statements) {
		all = append(all, "leases in rows were not ended")
	}
	if slices.ContainsFunc(statements, procedure.MatchString) {
		all = append(all, "what a CALL does inside is one step")
	}
	if slices.ContainsFunc(statements, several.MatchString) {
		all = append(all, "several statements in one text are one step")
	}
	if keepsDeadline(p.Sold) {
		all = append(all, "leases in values of Redis were not ended")
	}
	for _, shape := range p.Background {
		if slices.Contains(p.everySale, shape) && !p.Sends(shape) || slices.Contains(p.polls, shape) {
			all = append(all, "what comes without a sale, too, is no step: "+shape)
		}
	}
	return all
}

// setsWhatItCompares says whether a sale writes a time into a table in which it compares that with now, or with a time of its
// own clock, as a lease. Others are those of an offer.
func setsWhatItCompares(raw, shapes []string) bool {
	for _, s := range raw {
		if found := compared.FindStringSubmatch(s); found != nil && slices.ContainsFunc(shapes, func(s string) bool {
			set, _, _ := strings.Cut(strings.ToUpper(s), " WHERE ")
			return writes.MatchString(set) && strings.Contains(set, strings.ToUpper(found[1])) && strings.Contains(set, strings.ToUpper(found[2]))
		}) {
			return true
		}
	}
	return false
}

// keepsDeadline says whether a sale writes a time into a key of Redis that has no end of its own, as a lease: the command
// makes the key where there is none, or the sale looks at it, too. Other times are those of an order.
func keepsDeadline(sent []schedule.Sent) bool {
	var commands []string
	for _, s := range sent {
		if s.Server == wire.Redis {
			commands = append(commands, strings.Split(strings.ToUpper(s.Sent), "; ")...)
		}
	}
	looks := map[string]bool{}
	for _, c := range commands {
		if key := looksAt.FindStringSubmatch(c); key != nil {
			looks[key[1]] = true
		}
	}
	return slices.ContainsFunc(commands, func(c string) bool {
		key := deadline.FindStringSubmatch(c)
		return key != nil && (takes.MatchString(c) || looks[key[1]]) && !endsItself.MatchString(c)
	})
}

// Unended are those of Beyond that are about leases.
func (p *Probe) Unended() []string {
	return slices.DeleteFunc(p.Beyond(), func(what string) bool { return !strings.HasPrefix(what, "leases ") })
}

var (
	rowLease = regexp.MustCompile(`(?i)^(?:INSERT|UPDATE|REPLACE|DELETE)\b.*(?:\b\w*(?:until|expir|locked_)\w*\b|\b(?:\w*_)?lease\w*\b|\bINTERVAL\b)`)
	compared = regexp.MustCompile("(?i)^(?:INSERT|UPDATE|REPLACE|DELETE)(?: IGNORE| INTO| FROM)* (\\S+) .*\\b(\\w+)`? ?[<>]=? ?(?:(?:NOW|CURRENT_TIMESTAMP|UTC_TIMESTAMP|UNIX_TIMESTAMP)\\b|" +
		`'\d{4}-\d\d-\d\d[^']*'|'\(a time\)'|1[7-9]\d{8}(?:\d{3})?\b)`)
	writes = regexp.MustCompile(`^(?:INSERT|UPDATE|REPLACE)\b`)
	// deadline has a time of from 2023 on, in seconds, or units of down to nanoseconds.
	deadline   = regexp.MustCompile(`^(?:H?SETNX|GETSET|SET|HM?SET|ZADD) (\S+) (?:.* )?1[7-9]\d{8}(?:\d{3}){0,3}(?:\.\d+)?(?: |$)`)
	takes      = regexp.MustCompile(`^(?:H?SETNX|GETSET) |^SET .* NX\b`)
	endsItself = regexp.MustCompile(`^SET .* [EP]X(?:AT)? `)
	looksAt    = regexp.MustCompile(`^(?:GET|HM?GET|HGETALL|Z\w*BYSCORE|ZCOUNT|ZSCORE|ZRANGE) (\S+)`)
	several    = regexp.MustCompile(`; ?\S`)
	procedure  = regexp.MustCompile(`(?i)(?:^|; ?)CALL\b`)
	ofTables   = regexp.MustCompile(`(?i)\b(?:FROM|INTO|UPDATE|LOCK|CALL)\b`)
)

// Last is the form of the last request of a sale that was answered so, empty where that is not known.
func (p *Probe) Last(answered load.Outcome) string {
	steps := map[load.Outcome][]schedule.Sent{load.Sold: p.Sold, load.SoldOut: p.SoldOut}[answered]
	if len(steps) == 0 {
		return ""
	}
	return Shape(steps[len(steps)-1].Sent)
}

// Print prints the story of a service: what one sale and one refusal sent.
func (p *Probe) Print(w io.Writer) {
	for _, part := range []struct {
		what  string
		reply Reply
		steps []schedule.Sent
	}{{"one sale", p.SoldReply, p.Sold}, {"sold out", p.SoldOutReply, p.SoldOut}} {
		if part.reply.Outcome == "" {
			continue
		}
		fmt.Fprintf(w, "%s: answered with %d, %s\n", part.what, part.reply.Status, part.reply.Outcome)
		for _, step := range part.steps {
			fmt.Fprintf(w, "  %s  %s\n", step.Server, step.Sent)
			if step.Source != "" {
				fmt.Fprintf(w, "         the script: %s\n", strings.Join(strings.Fields(step.Source), " "))
			}
			fmt.Fprintf(w, "         → %s\n", step.Answer)
		}
	}
	if p.AfterAnswer {
		fmt.Fprintln(w, "the service goes on with a sale when it has answered")
	}
	for _, b := range p.Background {
		fmt.Fprintf(w, "of no sale: %s\n", b)
	}
	for _, what := range p.Unseen {
		fmt.Fprintf(w, "not seen: %s\n", what)
	}
}

// recorder keeps what was answered to the processes at which customers buy.
type recorder struct {
	customers int // how many those are

	mu   sync.Mutex // guards the rest
	all  []*wire.Exchange
	told map[*wire.Exchange]bool // those that were told of before they were answered
}

// among are those of what is under way that are kept. They are without their answer, and are not kept again when that comes.
func (r *recorder) among(underWay []*wire.Exchange) (all []*wire.Exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range underWay {
		if x.Process >= r.customers || r.told[x] {
			continue
		}
		if r.told == nil {
			r.told = map[*wire.Exchange]bool{}
		}
		r.told[x] = true
		all = append(all, &wire.Exchange{Process: x.Process, Conn: x.Conn, Server: x.Server, Name: x.Name, Text: x.Text, Source: x.Source})
	}
	return all
}

func (r *recorder) note(x *wire.Exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if x.Process < r.customers && !r.told[x] {
		r.all = append(r.all, x)
	}
}

// take returns what was kept since the last call.
func (r *recorder) take() []*wire.Exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}
