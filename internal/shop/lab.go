package shop

// What only the lab uses. A copy of the shop has none of it.

import (
	"fmt"
	"strings"
)

// CheckQuorum refuses a server that is named twice, because it would have two votes.
func CheckQuorum(urls []string) error {
	seen := map[string]bool{}
	for _, rawURL := range urls {
		o, err := parseRedisURL(rawURL)
		if err != nil {
			return errRedisURL
		}
		server := strings.TrimSpace(strings.Join(o.Addrs, ",") + " " + o.MasterName) // a Sentinel may know several masters
		if seen[server] {
			return fmt.Errorf("%s is there twice: want independent servers", server)
		}
		seen[server] = true
	}
	return nil
}
