package redisconn_test

import (
	"context"
	"strings"
	"testing"

	"stocklock/internal/redisconn"
	"stocklock/internal/testserver"
)

func open(t *testing.T) redisconn.Client {
	t.Helper()
	client, err := redisconn.Open("redis://" + testserver.RedisAddr(t) + "/3")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func TestReplies(t *testing.T) {
	client := open(t)
	commands := []redisconn.Command{{"SET", "n", 7}, {"GET", "n"}, {"GET", "none"}, {"LPUSH", "n", 1}, {"MGET", "n", "n"}, {"INFO", "server"}}
	for name, send := range map[string]func(context.Context, ...redisconn.Command) ([]redisconn.Reply, error){
		"pipeline": client.Pipeline, "transaction": client.Transaction,
	} {
		replies, err := send(t.Context(), commands...)
		if err == nil || !strings.HasPrefix(err.Error(), "WRONGTYPE") || replies[3].Err != err {
			t.Errorf("%s: %v, want the error of LPUSH", name, err)
		}
		if n, err := replies[1].Int64(); n != 7 || err != nil {
			t.Errorf("%s: the number is %d, %v", name, n, err)
		}
		if replies[2] != (redisconn.Reply{}) {
			t.Errorf("%s: a key that is not there: %v", name, replies[2])
		}
		if n, err := replies[4].Int64s(); len(n) != 2 || n[1] != 7 || err != nil {
			t.Errorf("%s: the numbers are %d, %v", name, n, err)
		}
		if info, err := replies[5].Info(); info["redis_mode"] != "standalone" || err != nil {
			t.Errorf("%s: INFO: %v, %v", name, info, err)
		}
	}
}

// TestMessagesEnd with the context, and with the connection.
func TestMessagesEnd(t *testing.T) {
	client := open(t)
	for _, ends := range []func(cancel func()){
		func(cancel func()) { cancel() },
		func(func()) { client.Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub") },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		messages, err := client.Subscribe(ctx, "a", "b")
		if err != nil {
			t.Fatal(err)
		}
		client.Do(ctx, "PUBLISH", "b", "hello")
		if m := <-messages; m != (redisconn.Message{Channel: "b", Payload: "hello"}) {
			t.Errorf("%+v", m)
		}
		ends(cancel)
		if m, open := <-messages; open {
			t.Errorf("%+v after the end", m)
		}
	}
}
