package labmode

import (
	"testing"
	"time"

	"stocklock/internal/sale"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want Fault
		ok   bool
	}{
		{"read sleep 300ms", Fault{sale.Read, Sleep, 300 * time.Millisecond}, true},
		{"write stop 1.5s", Fault{sale.Write, Stop, 1500 * time.Millisecond}, true},
		{"acquiring kill", Fault{sale.Acquiring, Kill, 0}, true},
		{"write lose", Fault{sale.Write, Lose, 0}, true},
		{"viewed hold 1s", Fault{sale.Viewed, Hold, time.Second}, true},
		{"  read   sleep   1s ", Fault{sale.Read, Sleep, time.Second}, true},
		{"", Fault{}, false},
		{"read", Fault{}, false},
		{"reading sleep 1s", Fault{}, false},
		{"read doze 1s", Fault{}, false},
		{"read sleep", Fault{}, false},
		{"read sleep 1s 2s", Fault{}, false},
		{"read sleep 0s", Fault{}, false},
		{"read sleep -1s", Fault{}, false},
		{"read sleep 61s", Fault{}, false},
		{"read sleep forever", Fault{}, false},
		{"read kill 1s", Fault{}, false},
		{"write lose 1s", Fault{}, false},
	} {
		got, err := ParseFault(tt.in)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("ParseFault(%q) = %+v, %v, want %+v, ok %v", tt.in, got, err, tt.want, tt.ok)
		}
		if !tt.ok {
			continue
		}
		if again, err := ParseFault(got.String()); again != got || err != nil {
			t.Errorf("ParseFault(%q) = %+v, %v: the string of %q does not lead back", got.String(), again, err, tt.in)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("read sleep 300ms")
	f.Add("acquiring kill")
	f.Add("write stop 2s")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseFault(s)
		if err != nil {
			return
		}
		if again, err := ParseFault(got.String()); again != got || err != nil {
			t.Errorf("ParseFault(%q) = %+v, but ParseFault(%q) = %+v, %v", s, got, got.String(), again, err)
		}
	})
}

func TestSleepIsInjected(t *testing.T) {
	start := time.Now()
	if err := (Fault{Point: sale.Read, Action: Sleep, For: 20 * time.Millisecond}).Inject(); err != nil {
		t.Fatal(err)
	}
	if slept := time.Since(start); slept < 20*time.Millisecond {
		t.Errorf("slept %s, want at least 20ms", slept)
	}
}
