package wire

import (
	"bufio"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// value is one value of RESP.
type value struct {
	raw   []byte
	kind  byte   // its first byte
	text  string // as an answer is shown
	plain string // a string as it is
	items []value
}

const (
	maxBulk  = 512 << 20 // Redis' own limit of one string
	maxItems = 1 << 20
)

// readRESP reads one value. An inline command comes as an array.
func readRESP(r *bufio.Reader) (v value, err error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return v, err
	}
	v.raw, v.kind = line, line[0]
	body := strings.TrimRight(string(line[1:]), "\r\n")
	switch v.kind {
	case '$', '=', '!':
		n, err := strconv.Atoi(body)
		switch {
		case err != nil || n > maxBulk:
			return v, fmt.Errorf("a string of length %q", body)
		case n < 0:
			v.text = "(nil)"
			return v, nil
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return v, err
		}
		v.raw, v.plain = append(v.raw, b...), string(b[:n])
		v.text = strconv.Quote(v.plain)
		if v.kind == '!' {
			v.text = "error: " + v.plain
		}
	case '*', '~', '>', '%', '|':
		n, err := strconv.Atoi(body)
		if v.kind == '%' || v.kind == '|' {
			n *= 2
		}
		switch {
		case err != nil || n > maxItems:
			return v, fmt.Errorf("an array of length %q", body)
		case n < 0:
			v.text = "(nil)"
			return v, nil
		}
		words := make([]string, n)
		for i := range n {
			item, err := readRESP(r)
			if err != nil {
				return v, err
			}
			v.raw, v.items, words[i] = append(v.raw, item.raw...), append(v.items, item), item.text
		}
		v.text = "[" + strings.Join(words, " ") + "]"
		if v.kind == '|' { // an attribute stands before the value that it is about
			about, err := readRESP(r)
			about.raw = append(v.raw, about.raw...)
			return about, err
		}
	case '_':
		v.text = "(nil)"
	case '-':
		v.text = "error: " + body
	case '+', ':', ',', '#', '(':
		v.text = body
	default:
		for word := range strings.FieldsSeq(string(line)) {
			v.items = append(v.items, value{plain: word})
		}
	}
	return v, nil
}

// words are the strings of a command.
func (v value) words() []string {
	words := make([]string, len(v.items))
	for i, item := range v.items {
		words[i] = item.plain
	}
	return words
}

// passing are the commands that set a connection up, or ask about the server: nobody else notices them.
var passing = map[string]bool{
	"hello": true, "auth": true, "client": true, "select": true, "readonly": true, "readwrite": true, "ping": true, "echo": true, "command": true,
	"unwatch": true, "cluster": true, "info": true, "multi": true, "function": true, "quit": true, "reset": true, "time": true,
	"config": true, "memory": true, "latency": true, "asking": true, "lolwut": true, "script": true, "discard": true, "role": true,
}

func (p *Proxy) serveRedis(c *Conn) {
	client, server := bufio.NewReader(c.client), bufio.NewReader(c.server)
	if head, err := client.Peek(1); err != nil {
		return
	} else if head[0] == 0x16 {
		p.cannot("TLS to Redis: give the service an address without it, such as redis:// instead of rediss://")
		return
	}
	replies, written := make(chan value), make(chan bool)
	defer close(written)
	go p.readReplies(c, server, replies, written)
	var queue []string // what was sent since MULTI
	inMulti := false
	var more, sent chan struct{} // closed when the client has sent more, or has gone; when a request has gone to the server
	for {
		if more != nil {
			<-more
			c.Behind.Store(false)
		}
		v, err := readRESP(client)
		if err != nil {
			return
		}
		args := v.words()
		if len(args) == 0 {
			p.cannot("a protocol other than RESP at the address of Redis")
			return
		}
		name := strings.ToLower(args[0])
		if name == "reset" {
			inMulti, queue = false, nil
		}
		listens, streams := strings.HasSuffix(name, "subscribe"), name == "monitor" || name == "psync" || name == "sync"
		if listens || streams || c.Subscribed.Load() && !c.resp3.Load() {
			if streams || listens && !strings.HasSuffix(name, "unsubscribe") {
				c.Subscribed.Store(true)
			}
			if !listens && name != "ping" && name != "quit" && name != "reset" {
				p.cannot(strings.ToUpper(name) + " to Redis, on a connection that listens")
			}
			if _, err := c.server.Write(v.raw); err != nil {
				return
			}
			continue
		}
		if name == "client" && len(args) > 1 && strings.EqualFold(args[1], "reply") {
			p.cannot("CLIENT REPLY to Redis: commands have no answers then")
			return
		}
		if name == "select" && len(args) > 1 {
			if n, err := strconv.Atoi(args[1]); err == nil {
				p.database.Store(int64(n))
			}
		}
		pass, text, source := passing[name], redisText(args), ""
		if stepName(name) == "eval" && len(args) > 1 {
			source = script(strings.Fields(text)[1])
		}
		switch {
		case name == "multi":
			inMulti = true
		case inMulti && name == "exec":
			text, inMulti, queue, name = "MULTI; "+strings.Join(queue, "; ")+"; EXEC", false, nil, "multi"
		case inMulti && name == "discard":
			inMulti, queue = false, nil
		case inMulti:
			queue, pass = append(queue, text), true
		}
		var x *Exchange
		if !pass {
			x = &Exchange{Process: p.process, Conn: c, Server: Redis, Name: stepName(name), Text: text, Source: source}
			more, sent = make(chan struct{}), make(chan struct{})
			go func() {
				defer close(more)
				if _, err := client.Peek(1); err == nil {
					c.Behind.Store(true)
					return
				}
				<-sent
				if server, is := c.server.(*net.TCPConn); is { // a client that is gone waits for nothing in Redis
					_ = server.CloseWrite()
				}
			}()
			if !p.tap.Sent(x) {
				close(sent)
				return
			}
		}
		c.waits.Store(true)
		_, err = c.server.Write(v.raw)
		if x != nil {
			close(sent)
		}
		answer, ok := value{text: "no answer"}, false
		if err == nil {
			answer, ok = <-replies
		}
		if ok && answer.kind != '-' {
			c.noteSetting(name, args[1:])
		}
		if name == "script" && ok && answer.kind == '$' && len(args) > 2 && strings.EqualFold(args[1], "load") {
			keepScript(args[2])
		}
		if x != nil {
			x.Answer, x.Failed = short(answer.text), strings.HasPrefix(answer.text, "error: ")
			x.Matched = ok && !x.Failed && answer.text != "(nil)" && answer.text != "0" && answer.text != "[]" && !(answer.kind == '#' && answer.text == "f")
			if !p.tap.Answered(x) {
				return
			}
		}
		if !ok {
			return
		}
		if _, err := c.client.Write(answer.raw); err != nil {
			return
		}
		written <- true
	}
}

// noteSetting notes what a command that Redis has carried out says of the answers that follow: RESP3 has other messages
// beside them, and a client that tracks keys is told when they change, on another connection if it says so.
func (c *Conn) noteSetting(name string, args []string) {
	switch of := strings.ToUpper(strings.Join(args, " ")); {
	case name == "hello" && len(args) > 0:
		c.resp3.Store(args[0] == "3")
	case name == "reset":
		c.resp3.Store(false)
	case name == "client" && c.resp3.Load() && !strings.Contains(of, " REDIRECT ") && (of == "CACHING YES" || strings.HasPrefix(of, "TRACKING ON") && !strings.Contains(of, " OPTIN")):
		c.Subscribed.Store(true)
	}
}

// readReplies passes on answers, and messages of subscriptions. A message behind an answer waits until that is written.
// Clients of RESP2 come back from a subscription to their pool: how many channels are left is in its answers.
func (p *Proxy) readReplies(c *Conn, server *bufio.Reader, replies chan<- value, written <-chan bool) {
	defer c.client.Close()
	defer close(replies)
	for {
		v, err := readRESP(server)
		if err != nil {
			return
		}
		ofSubscription := v.kind == '*' && len(v.items) == 3 && strings.HasSuffix(v.items[0].plain, "subscribe") && v.items[2].kind == ':'
		if ofSubscription || v.kind == '+' && v.text == "RESET" {
			c.Subscribed.Store(ofSubscription && v.items[2].text != "0")
		}
		if v.kind != '>' && !ofSubscription && c.waits.Swap(false) {
			select {
			case replies <- v:
				<-written
			case <-written: // nobody waits for answers any more
				return
			}
			continue
		}
		if len(v.items) > 0 && (strings.HasSuffix(v.items[0].plain, "message") || v.items[0].plain == "invalidate") {
			p.tap.Pushed(c, short(v.text))
		}
		if _, err := c.client.Write(v.raw); err != nil {
			return
		}
	}
}

// options are words of commands that are shown in capitals, however they were sent.
var options = map[string]bool{"NX": true, "XX": true, "PX": true, "EX": true, "GET": true, "KEEPTTL": true}

// redisText is a command in one line. A script stands in it by its SHA-1, so that EVAL reads as EVALSHA.
func redisText(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = Word(a)
		if options[strings.ToUpper(a)] {
			words[i] = strings.ToUpper(a)
		}
	}
	words[0] = strings.ToUpper(args[0])
	if words[0] == "EVAL" || words[0] == "EVAL_RO" {
		if len(args) > 1 {
			words[1] = keepScript(args[1])
		}
		words[0] = "EVALSHA"
	}
	if words[0] == "EVALSHA_RO" {
		words[0] = "EVALSHA"
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

// scripts are those that any proxy has seen, by their SHA-1: a client sends none that Redis has from another process.
var scripts sync.Map

func keepScript(source string) (sha string) {
	sum := sha1.Sum([]byte(source))
	sha = hex.EncodeToString(sum[:])
	scripts.Store(sha, source)
	return sha
}

// script is the text of a script, empty where no proxy has seen it.
func script(sha string) string {
	source, _ := scripts.Load(strings.ToLower(sha))
	text, _ := source.(string)
	return text
}

const maxWord = 200

// Word is an argument as the text of a command has it: as redis-cli reads it, or the beginning of a long one.
func Word(s string) string {
	odd := s == "" || strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == '"' || r == ';' || r == unicode.ReplacementChar
	})
	if len(s) > maxWord {
		return strconv.Quote(s[:maxWord] + "…")
	}
	if odd {
		return strconv.Quote(s)
	}
	return s
}

// stepName is a command as a step of a schedule is called.
func stepName(command string) string {
	switch command {
	case "eval", "evalsha", "eval_ro", "evalsha_ro":
		return "eval"
	}
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r == '.' || r == '_':
			return '-'
		}
		return -1
	}, strings.ToLower(command))
	if name == "" || name[0] < 'a' || name[0] > 'z' {
		return "command" + name
	}
	return strings.TrimRight(name, "0123456789")
}

const maxAnswer = 300

func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > maxAnswer {
		return string(runes[:maxAnswer]) + "…"
	}
	return s
}
