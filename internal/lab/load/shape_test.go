package load

import (
	"strings"
	"testing"
	"time"
)

func TestShape(t *testing.T) {
	for _, tt := range []struct {
		spec  string
		total int
		ends  bool
		due   map[int]time.Duration // of some requests
	}{
		{"200", 0, false, map[int]time.Duration{0: 0, 1: 5 * time.Millisecond, 200: time.Second}},
		{"200/10s", 2000, true, map[int]time.Duration{0: 0, 1999: 9995 * time.Millisecond, 2200: 11 * time.Second}},
		// 2 s from 100 to 300 a second: 200t + 100t^2/2... sends 150 in the first second and 250 in
		// the other.
		{"100..300/2s", 400, true, map[int]time.Duration{0: 0, 150: time.Second, 400: 2 * time.Second, 700: 3 * time.Second}},
		{"300..100/2s", 400, true, map[int]time.Duration{250: time.Second, 400: 2 * time.Second, 500: 3 * time.Second}},
		{"0..100/1s", 50, true, map[int]time.Duration{0: 0, 50: time.Second}},
		{"100,500/10s", 6000, true, map[int]time.Duration{0: 0, 999: 9990 * time.Millisecond, 1000: 10 * time.Second, 1500: 11 * time.Second, 6500: 21 * time.Second}},
	} {
		s, err := ParseShape(tt.spec)
		if err != nil {
			t.Errorf("ParseShape(%q): %v", tt.spec, err)
			continue
		}
		if n, ends := s.Total(); n != tt.total || ends != tt.ends {
			t.Errorf("%s sends %d, %v, want %d, %v", tt.spec, n, ends, tt.total, tt.ends)
		}
		for n, want := range tt.due {
			if got := s.Due(n); (got - want).Abs() > time.Microsecond {
				t.Errorf("%s: request %d is due at %s, want %s", tt.spec, n, got, want)
			}
		}
	}
	for _, spec := range []string{"", "0"} {
		if s, err := ParseShape(spec); err != nil || !s.IsZero() {
			t.Errorf("ParseShape(%q) = %v, %v, want the zero shape", spec, s, err)
		}
	}
}

func TestNoRateIsNoShape(t *testing.T) {
	if !Steady(0).IsZero() || Steady(1).IsZero() {
		t.Errorf("Steady(0) is %q, Steady(1) is %q: want only the first to be zero", Steady(0), Steady(1))
	}
}

func TestWhatIsNoShape(t *testing.T) {
	for _, spec := range []string{
		"-1", "fast", "100001", "1e3", "200/", "200/10", "200/0s", "200/2h", "200..2000", "100,200", "200..x/3s", "0,5/3s", "5,/3s",
		"..5/3s", "1..2..3/4s", "5..0/3s", "1,2..3/4s", "200/3s/3s", " 200",
	} {
		if s, err := ParseShape(spec); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("ParseShape(%q) = %+v, %v, want an error of one line", spec, s, err)
		}
	}
}

func FuzzParseShape(f *testing.F) {
	for _, spec := range []string{"200", "200/10s", "200..2000/30s", "100,500,1000/10s", "0..1/100ms", "1..2,3/4s"} {
		f.Add(spec)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		s, err := ParseShape(spec)
		if err != nil || s.IsZero() {
			return
		}
		if again, err := ParseShape(s.String()); err != nil || again.Due(1000) != s.Due(1000) {
			t.Errorf("ParseShape(%q) = %+v, and of its own String %+v, %v", spec, s, again, err)
		}
		total, _ := s.Total()
		for _, n := range []int{0, 1, 2, 100, total / 2, total - 1, total, total + 1, 2 * total} {
			if n < 0 {
				continue
			}
			due := s.Due(n)
			if due < 0 { // as a number that is none becomes
				t.Fatalf("%q: request %d is due at %s", spec, n, due)
			}
		}
		if s.Due(total+1) < s.Due(total) || s.Due(total) < s.Due(max(total-1, 0)) {
			t.Errorf("%q: what comes later is due earlier around %d", spec, total)
		}
	})
}
