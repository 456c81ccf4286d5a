package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"

	"stocklock/bench/lock"
	"stocklock/bench/measure"
	"stocklock/internal/lab/wholefile"
)

type env struct {
	Redis string `json:"redis"`
	Etcd  string `json:"etcd,omitempty"`
	Go    string `json:"go"`
	OS    string `json:"os"`
	Cores int    `json:"cores"`
}

func environment(redis, etcd string) env {
	return env{redis, etcd, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, runtime.NumCPU()}
}

func (e env) String() string {
	servers := "Redis " + e.Redis
	if e.Etcd != "" {
		servers += ", etcd " + e.Etcd
	}
	return fmt.Sprintf("%s, %s, %s, %d cores", servers, e.Go, e.OS, e.Cores)
}

// number is null in JSON when it was not measured.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

type spread struct {
	Median number `json:"median"`
	Min    number `json:"min"`
	Max    number `json:"max"`
}

func spreadOf(values []float64) spread {
	s := measure.SpreadOf(values)
	return spread{number(s.Median), number(s.Min), number(s.Max)}
}

type jsonLock struct {
	Lock         string            `json:"lock"`
	ShareOfMutex spread            `json:"share_of_mutex"`
	OverMutex    spread            `json:"us_over_mutex"`
	TripsOver    spread            `json:"round_trips_over_mutex"`
	Metrics      map[string]spread `json:"metrics"`
	LostUpdates  number            `json:"lost_updates"`
	Errors       number            `json:"errors"`
}

type jsonCell struct {
	Shape      string     `json:"shape"`
	Section    string     `json:"section"`
	Processes  int        `json:"processes"`
	Goroutines int        `json:"goroutines"`
	DelayMS    float64    `json:"delay_ms"`
	PauseMS    float64    `json:"pause_ms"`
	SectionUS  number     `json:"section_us"` // with the mutex; null without it
	TripUS     number     `json:"round_trip_us"`
	Locks      []jsonLock `json:"locks"`
}

type jsonShop struct {
	Strategy  string `json:"strategy"`
	Against   string `json:"against"`
	Shops     int    `json:"shops"`
	PerSecond spread `json:"sales_per_second"`
	Sales     spread `json:"sales_ratio"`
	P99       spread `json:"p99_ratio"`
}

type jsonTarget struct {
	Target  string  `json:"target"`
	AtLeast *number `json:"at_least,omitempty"`
	AtMost  *number `json:"at_most,omitempty"`
	Got     spread  `json:"got"`
	Met     bool    `json:"met"`
}

// writeJSON writes all measurements to the file at path.
func writeJSON(path string, e env, p plan, results []measure.Results, shop []shopRatio, targets []target) error {
	tuning := map[string]string{}
	for _, l := range p.locks {
		tuning[l.Name] = l.Doc + "; tuning: " + lock.All[lock.Place(l.Name)].Tuning
	}
	document := struct {
		Environment env               `json:"environment"`
		Repeat      int               `json:"repeat"`
		Seconds     float64           `json:"seconds"`
		Locks       map[string]string `json:"locks"`
		Cells       []jsonCell        `json:"cells"`
		Shop        []jsonShop        `json:"shop,omitempty"`
		Targets     []jsonTarget      `json:"targets"`
	}{Environment: e, Repeat: p.repeat, Seconds: p.duration.Seconds(), Locks: tuning}
	for _, r := range results {
		c := jsonCell{
			Shape: r.Shape.Name, Section: r.Section.Name, Processes: r.Shape.Processes, Goroutines: r.Shape.Goroutines,
			SectionUS: number(sectionOf(r).Median), TripUS: number(roundTripOf(r).Median), DelayMS: r.Shape.Delay.Seconds() * 1000, PauseMS: r.Shape.Pause.Seconds() * 1000,
		}
		for _, l := range r.Locks {
			j := jsonLock{
				Lock: l.Lock, ShareOfMutex: spreadOf(r.Ratio(l.Lock, limit, rate)), OverMutex: spreadOf(overMutex(r, l.Lock)),
				TripsOver: spreadOf(inRoundTrips(r, overMutex(r, l.Lock))), Metrics: map[string]spread{},
				LostUpdates: number(sum(l.Of(func(s measure.Sample) float64 { return s.LostUpdates }))),
				Errors:      number(sum(l.Of(func(s measure.Sample) float64 { return s.Errors }))),
			}
			for _, m := range slices.Concat(metrics, pairMetrics) {
				j.Metrics[m.name] = spreadOf(l.Of(m.of))
			}
			c.Locks = append(c.Locks, j)
		}
		document.Cells = append(document.Cells, c)
	}
	for _, s := range shop {
		document.Shop = append(document.Shop, jsonShop{s.Strategy, s.Against, s.Shops, spreadOf(s.PerSecond), spreadOf(s.Sales), spreadOf(s.P99)})
	}
	for _, t := range targets {
		j := jsonTarget{Target: t.what, Got: spread{number(t.got.Median), number(t.got.Min), number(t.got.Max)}, Met: t.met()}
		bound := number(t.bound)
		if t.atLeast {
			j.AtLeast = &bound
		} else {
			j.AtMost = &bound
		}
		document.Targets = append(document.Targets, j)
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.Write(path, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}
