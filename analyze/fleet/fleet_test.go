package fleet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// start is the beginning of the first run.
var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// gpuOf returns GPU number n, with 8 on each host.
func gpuOf(n int) Subject {
	return Subject{Level: GPU, Host: fmt.Sprintf("node%d", n/8), GPU: int32(n % 8), UUID: fmt.Sprintf("GPU-%04d", n), Rank: fmt.Sprintf("TP%d", n%8)}
}

// runOn makes the run of one day on n GPUs, some of which were found to be slow.
func runOn(day, n int, found ...int) *Run {
	r := &Run{From: trace.Time(start.AddDate(0, 0, day).UnixNano()), seen: map[key]*sighting{}}
	r.To = r.From + trace.Time(time.Minute)
	for i := range n {
		gpu := gpuOf(i)
		host := r.note(Subject{Level: Host, Host: gpu.Host}, true)
		x := r.note(gpu, true)
		if slices.Contains(found, i) {
			x.kinds, host.kinds = []finding.Kind{finding.Straggler}, []finding.Kind{finding.Straggler}
			host.on[gpu.key()] = true
		}
	}
	return r
}

// A GPU that is found repeatedly is certain, its host follows from it, and GPUs that
// are found by chance are not reported.
func TestRepeatOffender(t *testing.T) {
	var runs []*Run
	for day := range 12 {
		found := []int{8*(1+day%7) + day%8}
		if day%2 == 0 {
			found = append(found, 5)
		}
		runs = append(runs, runOn(day, 64, found...))
	}
	f := New(runs)
	o := &f.Offenders[0]
	if o.UUID != "GPU-0005" || o.Found != 6 || o.Could != 12 || o.Sure != Certain {
		t.Errorf("the first offender is %v", o)
	}
	if got := o.First; got != runs[0].From || o.Last != runs[10].From {
		t.Errorf("it was found from %v to %v", o.First, o.Last)
	}
	for _, o := range f.Offenders[1:] {
		switch {
		case o.Level == Host && o.Host == "node0":
			if o.Because == nil || o.Because.UUID != "GPU-0005" {
				t.Errorf("%v is late because of %v", o.String(), o.Because)
			}
		case o.repeats():
			t.Errorf("%v is %v", o.String(), o.Sure)
		}
	}
	list := f.Look().Findings
	if len(list) != 1 || !strings.HasPrefix(list[0].Text, "GPU 5 of node0 (GPU-0005) was late or slow in 6 of 12 runs (straggler), 0.281 expected by chance; p = ") {
		t.Fatalf("it says %+v", list)
	}
	x := &list[0]
	if x.Kind != finding.Repeat || x.Confidence != finding.Certain || x.Since != runs[0].From || x.At.String() != "GPU 5 (node0)" {
		t.Errorf("the finding is %+v at %s", x, x.At.String())
	}

}

// P is the probability if each run drew its slow GPUs at random.
func TestChanceOfOffender(t *testing.T) {
	var runs []*Run
	for day := range 5 {
		runs = append(runs, runOn(day, 8, slices.Compact([]int{1, 1 + day%2})...))
	}
	got := New(runs).Offenders[0]
	if got.UUID != "GPU-0001" || got.Found != 5 {
		t.Fatalf("the first offender is %v", got)
	}
	// The GPU is found in all runs: in three that find one of eight GPUs, and in two that find two.
	want := 8 * math.Pow(1./8, 3) * math.Pow(2./8, 2)
	if math.Abs(got.P/want-1) > 1e-9 {
		t.Errorf("p = %g, want %g", got.P, want)
	}
}

// One run is not enough, and neither are two of eight GPUs.
func TestTooLittle(t *testing.T) {
	for _, runs := range [][]*Run{{runOn(0, 64, 3)}, {runOn(0, 8, 3), runOn(1, 8, 3)}} {
		f := New(runs)
		for _, o := range f.Offenders {
			if o.Sure != TooLittle {
				t.Errorf("%d runs: %v is %v", len(runs), o.String(), o.Sure)
			}
		}
		r := f.Look()
		if little := r.In(finding.TooLittle); len(little) == 0 || !strings.HasPrefix(little[0], "Not judged: repeat offenders: ") {
			t.Errorf("%d runs: %q", len(runs), little)
		}
	}
}

// If slow GPUs are drawn at random, offenders are rarer than the significance level,
// since the test is exact and corrects for the number of GPUs.
func TestRateOfOffendersByChance(t *testing.T) {
	const fleets = 300
	alarms := 0
	for seed := range uint64(fleets) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var runs []*Run
		for day := range 30 {
			runs = append(runs, runOn(day, 24, rng.Perm(24)[:rng.IntN(4)]...))
		}
		if slices.ContainsFunc(offenders(runs), func(o Offender) bool { return o.Level == GPU && o.repeats() }) {
			alarms++
		}
	}
	if most := int(likelyP * fleets); alarms > most {
		t.Errorf("%d of %d fleets have an offender, %d at most are asked for", alarms, fleets, most)
	}
}

// withStep adds a step time to a run.
func (r *Run) withStep(host string, median int64) *Run {
	r.steps = append(r.steps, stepTime{Series: Series{ofDevices, "decode"}, host: host, median: median, total: 10 * median})
	return r
}

// A change on all hosts is found on its day, with the versions that came that day,
// even if each day has different hosts with different speeds.
func TestDrift(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var runs []*Run
	for day := range 30 {
		r := runOn(day, 8)
		ratio, driver := 1.0, "550"
		if day >= 15 {
			ratio, driver = 1.08, "570"
		}
		r.versions = []version{{profile.Version{Of: "GPU driver", Is: driver}, 8}, {profile.Version{Of: "CUPTI", Is: "26"}, 8}}
		for host := range 20 {
			if rng.IntN(3) > 0 {
				usual := float64(20e6 + 1e6*host)
				r.withStep(fmt.Sprintf("node%d", host), int64(usual*ratio*(1+0.01*rng.NormFloat64())))
			}
		}
		runs = append(runs, r)
	}
	var drifts []*Drift
	for _, d := range New(runs).Days {
		if d.Drift != nil {
			drifts = append(drifts, d.Drift)
		}
	}
	if len(drifts) != 1 {
		t.Fatalf("%d changes, want 1", len(drifts))
	}
	d := drifts[0]
	if d.Day != "2026-03-16" || math.Abs(d.Ratio-1.08) > 0.01 {
		t.Errorf("it changed on %s by %g", d.Day, d.Ratio)
	}
	if text := d.String(); !strings.Contains(text, "steps take 8.") || !strings.HasSuffix(text, "; at about that time, GPU driver went from 550 to 570") {
		t.Errorf("it says %q", text)
	}
}

// Without a change, false alarms stay within the significance level.
func TestRateOfDriftByChance(t *testing.T) {
	const fleets = 100
	alarms := 0
	for seed := range uint64(fleets) {
		rng := rand.New(rand.NewPCG(seed, 9))
		var runs []*Run
		for day := range 30 {
			runs = append(runs, runOn(day, 8).withStep("node0", int64(20e6*(1+0.03*rng.NormFloat64()))))
		}
		if slices.ContainsFunc(days(runs, nil), func(d Day) bool { return d.Drift != nil }) {
			alarms++
		}
	}
	if alarms > 4 {
		t.Errorf("%d of %d fleets changed", alarms, fleets)
	}
}

// Losses of findings at different ranks add up. If findings may be at the same
// place, only the largest counts, and no kind costs more than the total.
func TestLosses(t *testing.T) {
	at := func(host string, tp int) place.Location {
		where := place.Named(fmt.Sprintf("TP%d", tp))
		where.Host = host
		return where
	}
	found := func(kind finding.Kind, where place.Location, cost float64) finding.Finding {
		return finding.Finding{Kind: kind, At: where, Cost: cost, CostBasis: finding.GPUTime}
	}
	r := &Run{GPUTime: 1000}
	for _, test := range []struct {
		found []finding.Finding
		want  float64
	}{
		{[]finding.Finding{found(finding.Straggler, at("a", 1), 0.1), found(finding.Straggler, at("a", 2), 0.2), found(finding.Straggler, at("b", 1), 0.3)}, 600},
		{[]finding.Finding{found(finding.Straggler, at("a", 1), 0.1), found(finding.Straggler, at("a", 1), 0.25)}, 250},
		{[]finding.Finding{found(finding.GPU, place.Location{}, 0.5), found(finding.GPU, at("a", 1), 0.25), found(finding.GPU, at("b", 1), 0.2)}, 500},
		{[]finding.Finding{found(finding.GPU, place.Location{}, 0.1), found(finding.GPU, at("a", 1), 0.25), found(finding.GPU, at("b", 1), 0.2)}, 450},
		{[]finding.Finding{found(finding.Straggler, at("a", 1), 0.8), found(finding.Straggler, at("a", 2), 0.7)}, 1000},
	} {
		list := r.lose(test.found, &ranks{})
		if len(list) != 1 || math.Abs(list[0].GPU-test.want) > 1e-6 || list[0].Request != 0 {
			t.Errorf("%v cost %v, want %g", test.found, list, test.want)
		}
	}
}

// A new version is reported with its predecessor.
func TestVersions(t *testing.T) {
	var runs []*Run
	for day, of := range [][]string{{"1"}, {"1"}, {"1", "2"}, {"2"}, {"3"}} {
		r := runOn(day, 8)
		for _, is := range of {
			r.versions = append(r.versions, version{profile.Version{Of: "sglang", Is: is}, 1})
		}
		runs = append(runs, r)
	}
	got := ""
	for _, u := range New(runs).Versions {
		got += fmt.Sprintf("%s in %d after %q; ", u.Version.Is, u.Runs, u.Before)
	}
	if want := `1 in 3 after ""; 2 in 2 after "1"; 3 in 1 after "2"; `; got != want {
		t.Errorf("versions are %s, want %s", got, want)
	}
}

// A rank that appears in profiles and in requests is one subject. A GPU is
// identified by its UUID, or else by its number, or else by its rank.
func TestSubjectKeys(t *testing.T) {
	for _, test := range []struct {
		a, b Subject
		same bool
	}{
		{Subject{UUID: "x", Host: "a", GPU: 1}, Subject{UUID: "x", Host: "b", GPU: 2}, true},
		{Subject{Host: "a", GPU: 1, Rank: "TP0"}, Subject{Host: "a", GPU: 1, Rank: "TP1"}, true},
		{Subject{Host: "a", GPU: 1}, Subject{Host: "b", GPU: 1}, false},
		{Subject{Host: "a", GPU: -1, Rank: "TP0"}, Subject{Host: "a", GPU: -1, Rank: "TP1"}, false},
		{Subject{Level: Host, Host: "a"}, Subject{Level: GPU, Host: "a", GPU: -1}, false},
		{Subject{Level: Hosts, Host: "a", To: "b"}, Subject{Level: Hosts, Host: "b", To: "a"}, false},
	} {
		if same := test.a.key() == test.b.key(); same != test.same {
			t.Errorf("%v and %v: %v", test.a, test.b, same)
		}
	}
}

// How many runs have findings of their own is told, unless these cost next to nothing.
func TestFindingsOfSingleRuns(t *testing.T) {
	runs := []*Run{{}, {topCost: 0.03}, {topCost: 0.02}, {topCost: 0.001}}
	for n, want := range map[int]string{1: "1; no repeat offender", 2: "2; no repeat offender; 1 has findings of its own (", 4: "4; no repeat offender; 2 have findings of their own ("} {
		f := Fleet{Runs: runs[:n]}
		if got := f.Words(); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
