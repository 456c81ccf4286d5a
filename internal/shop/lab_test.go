package shop

import "testing"

func TestAServerHasOneVote(t *testing.T) {
	for _, test := range []struct {
		urls     []string
		accepted bool
	}{
		{[]string{"redis://a", "redis://b", "redis://c"}, true},
		{[]string{"redis://a:1", "redis://a:2", "redis://a:3"}, true},
		{[]string{"redis://s:26379?master_name=a", "redis://s:26379?master_name=b"}, true},
		{[]string{"redis://s:26379?master_name=a", "redis://s:26379?master_name=a"}, false},
		{[]string{"redis://a", "redis://b", "redis://a:6379/0"}, false},
		{[]string{"redis://:one@a/1", "rediss://:two@a/2"}, false},
	} {
		if err := CheckQuorum(test.urls); (err == nil) != test.accepted {
			t.Errorf("%s: %v", test.urls, err)
		}
	}
}
