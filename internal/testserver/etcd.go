package testserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Etcd is a private etcd with one member.
type Etcd struct {
	*Process
	Addr string // host:port for clients
}

// Etcd starts an etcd server and waits until it answers. Its leases can be as short as one second,
// the shortest that the clients know: an etcd with its usual election timeout makes them longer.
func (g *Group) Etcd(ctx context.Context) (*Etcd, error) {
	program, err := findEtcd()
	if err != nil {
		return nil, err
	}
	dir, err := g.Folder("etcd")
	if err != nil {
		return nil, err
	}
	server := &Etcd{}
	err = g.WithPort(func(port int) error {
		server.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		peerPort, err := g.FreePort()
		if err != nil {
			return err
		}
		url, peer := "http://"+server.Addr, "http://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(peerPort))
		args := []string{
			program, "--name=stocklock", "--data-dir=" + filepath.Join(dir, "data-"+strconv.Itoa(port)),
			"--listen-client-urls=" + url, "--advertise-client-urls=" + url,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=stocklock=" + peer,
			"--heartbeat-interval=100", "--election-timeout=500", "--log-level=error",
		}
		server.Process = &Process{Program: Program{Name: "etcd " + server.Addr, Args: args, Dir: dir, Ready: server.answers}}
		return g.Launch(ctx, server.Process)
	})
	return server, err
}

func findEtcd() (string, error) {
	return find("etcd", "install it with: apt-get install etcd-server, or: brew install etcd", "etcd")
}

// HasEtcd returns [ErrMissing] with what to install where etcd is not installed.
func HasEtcd() error {
	_, err := findEtcd()
	return err
}

// answers wants a member that has a leader.
func (s *Etcd) answers(ctx context.Context) error {
	var health struct{ Health string }
	if err := s.ask(ctx, http.MethodGet, "/health", nil, &health); err != nil {
		return err
	}
	if health.Health != "true" {
		return fmt.Errorf("its health is %q", health.Health)
	}
	return nil
}

// Version returns the version of the server, such as 3.4.23.
func (s *Etcd) Version(ctx context.Context) (string, error) {
	var version struct {
		Server string `json:"etcdserver"`
	}
	err := s.ask(ctx, http.MethodGet, "/version", nil, &version)
	return version.Server, err
}

// FirstUnder returns which of the keys with this prefix was created first, empty where there is none.
func (s *Etcd) FirstUnder(ctx context.Context, prefix string) (string, error) {
	first, err := s.firstUnder(ctx, prefix)
	return string(first.Key), err
}

// etcdKey is a key in the JSON of etcd, which has bytes in Base64 and numbers as strings.
type etcdKey struct {
	Key   []byte `json:"key"`
	Lease string `json:"lease"`
}

func (s *Etcd) firstUnder(ctx context.Context, prefix string) (etcdKey, error) {
	var found struct {
		Keys []etcdKey `json:"kvs"`
	}
	end := []byte(prefix)
	end[len(end)-1]++
	question, err := json.Marshal(map[string]any{
		"key": []byte(prefix), "range_end": end, "sort_target": "CREATE", "sort_order": "ASCEND", "limit": 1, "keys_only": true})
	if err != nil {
		return etcdKey{}, err
	}
	err = s.ask(ctx, http.MethodPost, "/v3/kv/range", bytes.NewReader(question), &found)
	if err != nil || len(found.Keys) == 0 {
		return etcdKey{}, err
	}
	return found.Keys[0], nil
}

// HolderUnder returns which of the keys with this prefix was created first, and the time that is left
// of its lease, in whole seconds. The key is empty where there is none.
func (s *Etcd) HolderUnder(ctx context.Context, prefix string) (key string, left time.Duration, err error) {
	first, err := s.firstUnder(ctx, prefix)
	if err != nil || first.Key == nil {
		return "", 0, err
	}
	var lease struct {
		TTL int64 `json:",string"` // of seconds; negative for one that has ended
	}
	question := fmt.Sprintf(`{"ID":%q}`, first.Lease)
	err = s.ask(ctx, http.MethodPost, "/v3/lease/timetolive", strings.NewReader(question), &lease)
	return string(first.Key), time.Duration(lease.TTL) * time.Second, err
}

func (s *Etcd) ask(ctx context.Context, method, path string, question io.Reader, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.Addr+path, question)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("testserver: %s%s: %s", s.Name, path, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("testserver: %s%s: %s: %w", s.Name, path, response.Status, err)
	}
	return nil
}
