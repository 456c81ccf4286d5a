package measure

import "testing"

func TestUsageCountsWhatTheLockSendsItself(t *testing.T) {
	info := map[string]map[string]string{
		"Stats":        {"total_net_input_bytes": "100", "total_net_output_bytes": "20"},
		"CPU":          {"used_cpu_sys": "0.5", "used_cpu_user": "1.25"},
		"Commandstats": {"cmdstat_set": "calls=7,usec=3,usec_per_call=0.4", "cmdstat_evalsha": "calls=5,usec=9", "cmdstat_del": "calls=4,usec=1"},
	}
	got := usageIn(info, []string{"set", "evalsha", "eval"})
	if want := (usage{requests: 12, bytes: 120, cpu: 1.75}); got != want {
		t.Errorf("usage %+v, want %+v", got, want)
	}
	if got := got.since(usage{requests: 2, bytes: 20, cpu: 0.75}); got != (usage{10, 100, 1}) {
		t.Errorf("since then %+v", got)
	}
}
