// Package redisconn sends commands to Redis for tests, and for what measures. It does so by
// go-redis, and its types name none of go-redis' own. A package whose code or types reach a client
// of go-redis takes seconds longer to compile.
//
// # Decisions
//
// Few packages reach a client of go-redis. From version 9.23 on, go-redis holds its client by a
// generic type, weak.Pointer[Client]. The compiler then makes 600 methods again in each package
// whose code or whose exported types reach the client: two seconds and 9 MB, however small the
// package. The lab and the tests therefore send their commands by internal/redisconn, whose types
// name none of go-redis, and arch_test.go lists the packages that may reach a client. gorm's
// generic API costs three seconds in a package that calls it: internal/stock calls the other one.
package redisconn

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Its pool would write of servers that are away into the output of programs. A command returns that.
func init() { logging.Disable() }

// Client has connections to one server. It is safe for concurrent use, and sends each command once.
type Client interface {
	// Do sends one command.
	Do(ctx context.Context, command ...any) Reply
	// Pipeline sends commands together, on one connection. The error is the first one among the
	// replies.
	Pipeline(ctx context.Context, commands ...Command) ([]Reply, error)
	// Transaction is Pipeline between MULTI and EXEC.
	Transaction(ctx context.Context, commands ...Command) ([]Reply, error)
	// Subscribe returns the messages of channels, once the server has confirmed it. They end with
	// ctx, and with the connection.
	Subscribe(ctx context.Context, channels ...string) (<-chan Message, error)
	// DB is the number of the database.
	DB() int
	Close() error
}

// Command is the name of a command with its arguments.
type Command []any

// Message is one that was published on a channel.
type Message struct{ Channel, Payload string }

// Reply is the answer to a command. The value is nil where there is no such key, which is no error.
type Reply struct {
	Value any
	Err   error
}

// Int64 is a number, or a text that is one.
func (r Reply) Int64() (int64, error) { return redis.NewCmdResult(r.Value, r.Err).Int64() }

// Text is a text.
func (r Reply) Text() (string, error) { return redis.NewCmdResult(r.Value, r.Err).Text() }

// Int64s is a list of numbers, or of texts that are some.
func (r Reply) Int64s() ([]int64, error) { return redis.NewCmdResult(r.Value, r.Err).Int64Slice() }

// Slice is a list.
func (r Reply) Slice() ([]any, error) { return redis.NewCmdResult(r.Value, r.Err).Slice() }

// Info is what INFO and CLUSTER INFO answer, by the names of the fields.
func (r Reply) Info() (map[string]string, error) {
	text, err := r.Text()
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = strings.TrimSpace(value)
		}
	}
	return fields, err
}

// Open returns a client for a URL such as redis://user:password@host:port/0?read_timeout=1s. It
// sends nothing.
func Open(url string) (Client, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	const patience = 15 * time.Second // a machine with too much work is no failure
	o.ReadTimeout, o.WriteTimeout, o.ContextTimeoutEnabled = cmp.Or(o.ReadTimeout, patience), cmp.Or(o.WriteTimeout, patience), true
	o.Protocol, o.MaxRetries = 3, -1 // from 3 on, a map is no list
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return client{redis.NewClient(o)}, nil
}

type client struct{ redis *redis.Client }

func (c client) DB() int      { return c.redis.Options().DB }
func (c client) Close() error { return c.redis.Close() }

func (c client) Do(ctx context.Context, command ...any) Reply {
	return replyOf(c.redis.Do(ctx, command...).Result())
}

func replyOf(value any, err error) Reply {
	if errors.Is(err, redis.Nil) {
		return Reply{}
	}
	return Reply{value, err}
}

func (c client) Pipeline(ctx context.Context, commands ...Command) ([]Reply, error) {
	return send(ctx, c.redis.Pipeline(), commands)
}

func (c client) Transaction(ctx context.Context, commands ...Command) ([]Reply, error) {
	return send(ctx, c.redis.TxPipeline(), commands)
}

func send(ctx context.Context, pipeline redis.Pipeliner, commands []Command) (replies []Reply, err error) {
	sent := make([]*redis.Cmd, len(commands))
	for i, command := range commands {
		sent[i] = pipeline.Do(ctx, command...)
	}
	_, _ = pipeline.Exec(ctx) // each command has its error
	for _, cmd := range sent {
		r := replyOf(cmd.Result())
		replies, err = append(replies, r), cmp.Or(err, r.Err)
	}
	return replies, err
}

func (c client) Subscribe(ctx context.Context, channels ...string) (<-chan Message, error) {
	subscription := c.redis.Subscribe(ctx, channels...)
	if _, err := subscription.Receive(ctx); err != nil { // the confirmation of the first channel
		return nil, errors.Join(err, subscription.Close())
	}
	messages := make(chan Message)
	stop := context.AfterFunc(ctx, func() { subscription.Close() }) // a read does not end with ctx
	go func() {
		defer close(messages)
		defer subscription.Close()
		defer stop()
		for {
			m, err := subscription.ReceiveMessage(ctx)
			if err != nil {
				return
			}
			select {
			case messages <- Message{m.Channel, m.Payload}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return messages, nil
}
