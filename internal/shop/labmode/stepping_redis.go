package labmode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
)

// RedisHook returns the hook of a client whose requests are held. Server is what the scheduler
// calls it.
func (s *Stepper) RedisHook(server string) redis.Hook { return redisSteps{s, server} }

type redisSteps struct {
	*Stepper
	server string
}

func (h redisSteps) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h redisSteps) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		name := strings.ToLower(cmd.Name())
		if opensConnection[name] || isCancelled(ctx) {
			return next(ctx, cmd)
		}
		if name == "eval" && len(cmd.Args()) > 1 {
			return h.loads(ctx, cmd, next)
		}
		r := request{server: h.server, name: name, text: redisText(cmd.Args())}
		if name == "evalsha" || name == "fcall" {
			r.name, r.background = h.scriptStep(ctx, fmt.Sprint(cmd.Args()[1]), firstKey(cmd.Args()))
		}
		if name == "pexpire" || name == "expire" {
			r.background = inSection(ctx)
		}
		number, order := h.wait(ctx, r)
		sending, cancel := ctx, context.CancelFunc(func() {})
		if number != 0 {
			sending, cancel = lateStart(ctx, time.Now())
		}
		err := next(sending, cmd)
		cancel()
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			setUnloaded(ctx, unloaded{r, number, order})
			return err
		}
		if answer := h.done(ctx, r, number, order, redisAnswer(cmd, err), real(err)); order.Lose {
			cmd.SetErr(answer)
			return answer
		}
		return err
	}
}

// loads sends a script with its source. If the server did not know it before, both requests are one
// step.
func (h redisSteps) loads(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
	source := fmt.Sprint(cmd.Args()[1])
	sha := redis.NewScript(source).Hash()
	h.learn(sha, source)
	before := takeUnloaded(ctx)
	if before.request.name == "" { // it comes with its source at once
		r := request{server: h.server, text: redisText(append([]any{"EVALSHA", sha}, cmd.Args()[2:]...))}
		r.name, r.background = h.scriptStep(ctx, sha, firstKey(cmd.Args()))
		number, order := h.wait(ctx, r)
		before = unloaded{r, number, order}
	}
	if before.number != 0 {
		late, cancel := lateStart(ctx, time.Now())
		defer cancel()
		ctx = late
	}
	err := next(ctx, cmd)
	if answer := h.done(ctx, before.request, before.number, before.order, redisAnswer(cmd, err), real(err)); before.order.Lose {
		cmd.SetErr(answer)
		return answer
	}
	return err
}

func (h redisSteps) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		var texts []string
		name := "pipeline"
		for _, cmd := range cmds {
			if opensConnection[strings.ToLower(cmd.Name())] {
				return next(ctx, cmds)
			}
			if cmd.Name() == "multi" {
				name = "exec"
			}
			texts = append(texts, redisText(cmd.Args()))
		}
		r := request{server: h.server, name: name, text: strings.Join(texts, "; ")}
		number, order := h.wait(ctx, r)
		err := next(ctx, cmds)
		var answers []string
		for _, cmd := range cmds {
			answers = append(answers, redisAnswer(cmd, cmd.Err()))
		}
		if answer := h.done(ctx, r, number, order, strings.Join(answers, "; "), real(err)); order.Lose {
			for _, cmd := range cmds {
				cmd.SetErr(answer)
			}
			return answer
		}
		return err
	}
}

// opensConnection has the commands that go-redis sends on its own on a new connection, and at the
// end of a WATCH.
var opensConnection = map[string]bool{
	"hello": true, "auth": true, "client": true, "select": true, "readonly": true, "ping": true, "command": true, "unwatch": true,
	"cluster": true, "script": true,
}

// scriptStep names the script of a sale as its strategy does, or else by the progress of the sale,
// because a lock's scripts have no names on the wire. A script that a goroutine of the lock sends
// inside the section is a renewal: the sale does not wait for it. A key that no script of the sale has
// named before is that of another lock, which a sale of several items acquires inside the first one.
func (s *Stepper) scriptStep(ctx context.Context, sha, key string) (name string, background bool) {
	of, _ := ctx.Value(stepKey{}).(*stepped)
	if of == nil {
		return "script", false
	}
	another := of.names(key)
	if name, ok := s.names[sha]; ok {
		return name, false
	}
	switch {
	case another && inSection(ctx), of.now() == "":
		return "acquire", false
	case inSection(ctx):
		return "renew", true
	}
	return "release", false
}

// firstKey is the first key of an EVAL or EVALSHA, empty for none.
func firstKey(args []any) string {
	if len(args) < 4 || fmt.Sprint(args[2]) == "0" {
		return ""
	}
	return fmt.Sprint(args[3])
}

// names notes the key of a script, and reports whether the sale has named another one before, and never
// this one.
func (of *stepped) names(key string) bool {
	of.mu.Lock()
	defer of.mu.Unlock()
	another := len(of.keys) > 0 && !slices.Contains(of.keys, key)
	if key != "" && !slices.Contains(of.keys, key) {
		of.keys = append(of.keys, key)
	}
	return another && key != ""
}

// inSection says whether a sale has its lock and does not release it yet. A command that sets an
// expiry is a renewal then.
func inSection(ctx context.Context) bool {
	of, _ := ctx.Value(stepKey{}).(*stepped)
	return of != nil && slices.Contains([]sale.Point{sale.Acquired, sale.Read, sale.Write, sale.Written}, of.now())
}

// lateStart is a context whose deadline is as far away as it was when the request was made: the
// time for which the scheduler held it does not count.
func lateStart(ctx context.Context, now time.Time) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); !ok || deadline.After(now) || isCancelled(ctx) {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), lateTimeout)
}

// isCancelled says whether the client will not send a request at all.
func isCancelled(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// lateTimeout bounds a request whose own time was over while it was held.
const lateTimeout = time.Second

// real is the error of a request, where redis.Nil is an answer.
func real(err error) error {
	if errors.Is(err, redis.Nil) || errors.Is(err, redis.TxFailedErr) {
		return nil
	}
	return err
}

// redisText is a command as redis-cli takes it.
func redisText(args []any) string {
	words := make([]string, len(args))
	for i, a := range args {
		word := fmt.Sprint(a)
		if i == 0 || slices.Contains(redisOptions, word) {
			word = strings.ToUpper(word)
		}
		if word == "" || strings.ContainsAny(word, " \t\r\n\"'\\") {
			word = strconv.Quote(word)
		}
		words[i] = word
	}
	return strings.Join(words, " ")
}

var redisOptions = []string{"nx", "xx", "px", "ex", "get", "keepttl"}

// redisAnswer is the reply as redis-cli shows it.
func redisAnswer(cmd redis.Cmder, err error) string {
	switch {
	case errors.Is(err, redis.Nil):
		return "(nil)"
	case errors.Is(err, redis.TxFailedErr):
		return "(nil): the transaction was not carried out"
	case err != nil:
		return "error: " + err.Error()
	}
	switch c := cmd.(type) {
	case *redis.BoolCmd:
		if c.Val() {
			return "1"
		}
		return "0"
	case *redis.StatusCmd:
		return c.Val()
	case *redis.StringCmd:
		return strconv.Quote(c.Val())
	case *redis.IntCmd:
		return strconv.FormatInt(c.Val(), 10)
	case interface{ Val() any }:
		return fmt.Sprint(c.Val())
	}
	text := cmd.String()
	if _, answer, ok := strings.Cut(text, ": "); ok {
		return answer
	}
	return text
}
