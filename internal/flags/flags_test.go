package flags_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"stocklock/internal/flags"
)

type settings struct {
	Lease time.Duration  `env:"TEST_LEASE" default:"10s" min:"50ms" max:"1m" help:"How long a lock lives."`
	Shops int            `default:"3" min:"1" help:"How many."`
	Rate  float64        `default:"1" min:"0.1" max:"10"`
	Wait  *time.Duration `min:"1ms" max:"1m"`
	Name  string
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"", ""},
		{"--lease=50ms --shops=1 --rate=10 --wait=1m", ""},
		{"--lease=49ms", "--lease (TEST_LEASE) is 49ms: want 50ms to 1m"},
		{"--lease=2h", "--lease (TEST_LEASE) is 2h0m0s: want 50ms to 1m"},
		{"--shops=0", "--shops is 0: want 1 or more"},
		{"--rate=NaN", "--rate is NaN: want 0.1 to 10"},
		{"--wait=0s", "--wait is 0s: want 1ms to 1m"},
	} {
		switch _, _, err := flags.Parse(&settings{}, strings.Fields(tt.args)); {
		case err == nil && tt.want != "", err != nil && err.Error() != tt.want:
			t.Errorf("%s: %v, want %q", tt.args, err, tt.want)
		}
	}
}

func TestHelpShowsRanges(t *testing.T) {
	var help bytes.Buffer
	if _, done, err := flags.Parse(&settings{}, []string{"--help"}, kong.Writers(&help, &help)); !done || err != nil {
		t.Errorf("done is %t, with %v", done, err)
	}
	for _, want := range []string{"How long a lock lives. Range: 50ms to 1m", "How many. Range: 1 or more", "Range: 0.1 to 10"} {
		if text := strings.Join(strings.Fields(help.String()), " "); !strings.Contains(text, want) {
			t.Errorf("the help lacks %q: %s", want, text)
		}
	}
}
