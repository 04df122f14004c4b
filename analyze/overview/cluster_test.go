package overview

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/serverlimit"
	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// usual are the scenarios in every test run, with one seed each; "make rates" covers all of them.
var usual = []string{"healthy", "healthy_pd", "mixed_models", "caches_and_drafts", "one_slower_always", "all_slower_50", "all_slower_10", "long_outputs", "cold_cache", "cold_cache_one", "heating", "slow_for_a_while", "late_answers_all", "client_timeouts", "slow_every_40", "sticky_tenant"}

// clusterVerdict counts how often the findings about scenarios are right.
type clusterVerdict struct {
	sync.Mutex
	t     *testing.T
	right map[string][2]int // by what is counted: right ones, and all
}

// count counts a run as right or wrong, with reasons if it is wrong.
func (v *clusterVerdict) count(what string, right bool, why ...any) {
	v.Lock()
	defer v.Unlock()
	n := v.right[what]
	if n[1]++; right {
		n[0]++
	} else {
		v.t.Log(append([]any{what + ":"}, why...)...)
	}
	v.right[what] = n
}

// A fault planted in a cluster of servers is one of the first two findings, and nothing else is a
// warning. The sentence contains the onset in its interval, and the cost matches a run without the fault.
func TestRateOfClusters(t *testing.T) {
	v := &clusterVerdict{t: t, right: map[string][2]int{}}
	seeds := testset.FirstSeeds(t, 1)
	for i := range cluster.Scenarios {
		s := &cluster.Scenarios[i]
		if len(seeds) == 1 && !slices.Contains(usual, s.Name) {
			continue
		}
		testset.EachSeed(seeds, func(seed uint64) { v.judge(s, seed+1) })
	}
	whats := make([]string, 0, len(v.right))
	for what := range v.right {
		whats = append(whats, what)
	}
	slices.Sort(whats)
	const least = 90
	for _, what := range whats {
		testset.Rate(t, what, v.right[what][0], v.right[what][1], least)
	}
}

// judge judges the findings about one run of a scenario.
func (v *clusterVerdict) judge(s *cluster.Scenario, seed uint64) {
	set, truth := testset.Clustered(v.t, s, seed)
	o := New(Input{Requests: set})
	found := o.Findings
	run := fmt.Sprintf("%s, seed %d:", s.Name, seed)
	added := strings.HasPrefix(s.Name, "burst") // bursts only add the time of additional requests
	if !added {
		share, extra := float64(truth.ExtraNs)/float64(truth.TotalNs), o.Sum.Extra()
		v.count("clusters: findings and what is unexplained add up to the extra time", math.Abs(extra-share) < max(share/4, 0.025), run, share, "by truth", extra)
	}
	if s.Healthy {
		alarms := slices.DeleteFunc(slices.Clone(found), func(f finding.Finding) bool { return f.Severity == finding.Info })
		v.count("clusters: no warning: "+s.Name, len(alarms) == 0, run, textsOf(alarms))
		return
	}
	at := slices.IndexFunc(found, func(f finding.Finding) bool { return isPlanted(truth, &f) })
	v.count("clusters: one of the first two findings: "+s.Name, at == 0 || at == 1, run, textsOf(found))
	if at < 0 {
		return
	}
	others := slices.DeleteFunc(slices.Delete(slices.Clone(found), at, at+1), func(f finding.Finding) bool { return f.Severity == finding.Info })
	v.count("clusters: no other warning beside what is planted", len(others) == 0, run, textsOf(others))
	f := &found[at]
	if truth.OnsetNs > truth.Lives[0].FromNs && truth.Open+truth.Broken == 0 {
		v.count("clusters: the onset is in the interval that is told", coversOnset(truth, f.Text), run, time.Unix(0, truth.OnsetNs).UTC(), f.Text)
	}
	if truth.ExtraNs > 0 && truth.Broken == 0 && !(added && truth.Open > 0) {
		share := float64(truth.ExtraNs) / float64(truth.TotalNs)
		v.count("clusters: costs are within a quarter of the truth", f.CostBasis == finding.RequestTime && f.Cost > 0.75*share && f.Cost < 1.25*share,
			run, share, "by truth,", f.Cost, f.Text)
		v.count("clusters: costs add up to no more than the truth", requestTime(found) < 1.25*share+0.005, run, share, "by truth", requestTime(found))
	}
}

// requestTime returns the sum of the costs in request time.
func requestTime(found []finding.Finding) (sum float64) {
	for i := range found {
		if found[i].CostBasis == finding.RequestTime {
			sum += found[i].Cost
		}
	}
	return sum
}

// isPlanted reports whether a finding names the planted fault and its place.
func isPlanted(truth *cluster.Truth, f *finding.Finding) bool {
	text := f.Text + " " + f.At.String()
	words := truth.Words
	if len(truth.Hosts) > 0 {
		places := "(" + strings.Join(truth.Hosts, "|") + ")"
		words = strings.ReplaceAll(words, "HOST", places)
		if !regexp.MustCompile(places).MatchString(text) {
			return false
		}
	}
	return regexp.MustCompile("(?is)" + words).MatchString(text)
}

// told matches a time and its interval in a sentence: "at 21:56:35 ± 2 s", "between 21:56:35 and 21:57:10".
var told = regexp.MustCompile(`(?:at|since|from|around|between) (\d\d:\d\d:\d\d(?:\.\d+)?)(?: ± ([\d.]+) (ms|s|min)| and (\d\d:\d\d:\d\d(?:\.\d+)?))?`)

// coversOnset reports whether the interval in a sentence contains the onset.
func coversOnset(truth *cluster.Truth, text string) bool {
	m := told.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	midnight := time.Unix(0, truth.OnsetNs).UTC().Truncate(24 * time.Hour)
	from, around := timeOfDay(m[1])
	to := from
	if m[2] != "" {
		half, _ := strconv.ParseFloat(m[2], 64)
		around += time.Duration(half * float64(map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "min": time.Minute}[m[3]]))
	}
	if m[4] != "" {
		to, _ = timeOfDay(m[4])
	}
	around += 5 * time.Millisecond // offsets between the clocks of hosts
	return midnight.Add(from-around).UnixNano() <= truth.OnsetEndNs && midnight.Add(to+around).UnixNano() >= truth.OnsetNs
}

// timeOfDay parses a time in a sentence, and returns its rounding error.
func timeOfDay(text string) (at, rounding time.Duration) {
	clock, err := time.Parse("15:04:05.999999999", text)
	if err != nil {
		return 0, 0
	}
	rounding = time.Second / 2
	if _, digits, ok := strings.Cut(text, "."); ok {
		for range digits {
			rounding /= 10
		}
	}
	return clock.Sub(clock.Truncate(24 * time.Hour)), rounding
}

// textsOf returns the texts of findings.
func textsOf(found []finding.Finding) string {
	var texts []string
	for i := range found {
		texts = append(texts, fmt.Sprintf("%s %s: %s", found[i].Kind, found[i].Severity, found[i].Text))
	}
	if texts == nil {
		return "nothing stands out"
	}
	return strings.Join(texts, "; ")
}

// A server that is away for a while leads, with the time that requests on the others take longer.
// A pair of servers with slow KV transfers leads, and not the servers that wait for them.
func TestWhatLeads(t *testing.T) {
	away := *cluster.Find("death")
	for seed := range uint64(2) {
		for _, want := range []struct {
			scenario *cluster.Scenario
			kind     finding.Kind
			change   func(c *cluster.Config)
		}{
			{&away, finding.Lifecycle, func(c *cluster.Config) {
				c.Faults[0].Every = 30 * time.Second
				for i := range c.Pools {
					c.Pools[i].Rate *= 1.6
				}
			}},
			{cluster.Find("slow_pair"), finding.Transfer, func(*cluster.Config) {}},
			{cluster.Find("slow_pair"), finding.Change, func(c *cluster.Config) { // a prefill server that stands still, and works off a backlog
				c.Pools[0].Rate *= 4
				c.Faults = []cluster.Fault{{Name: "stalls", Server: 1, Every: 12 * time.Second, Size: 1.2}}
			}},
		} {
			c := want.scenario.Config(seed + 1)
			want.change(&c)
			set, truth := testset.ClusteredAs(t, want.scenario, c)
			found := New(Input{Requests: set}).Findings
			share := float64(truth.ExtraNs) / float64(truth.TotalNs)
			f := &found[0]
			if f.Kind != want.kind || f.CostBasis != finding.RequestTime || f.Cost < 0.67*share || f.Cost > 1.5*share {
				t.Errorf("%s, seed %d: costs %v by truth: %v %v %q", want.scenario.Name, seed, share, f.Kind, f.Cost, textsOf(found))
			}
			for _, host := range truth.Hosts {
				if !strings.Contains(f.Text, host) {
					t.Errorf("%s, seed %d: %q does not name %s", want.scenario.Name, seed, f.Text, host)
				}
			}
		}
	}
}

// Requests that arrive at once make each other's batches larger: that is most of the extra time, beside what waits cost.
func TestCrowdCosts(t *testing.T) {
	s := cluster.Find("healthy")
	for seed := range uint64(2) {
		c := s.Config(seed + 1)
		for i := range c.Pools {
			c.Pools[i].Rate *= 3
		}
		c.Faults = []cluster.Fault{{Name: "burst", At: 60 * time.Second, Every: time.Second / 2, Size: 300}}
		set, truth := testset.ClusteredAs(t, s, c)
		result := New(Input{Requests: set})
		f, rest := &result.Findings[0], result.Sum.Unexplained()
		if others := float64(truth.ExtraNs) / float64(truth.TotalNs); f.Subkind != serverlimit.Crowd || f.Cost < others || f.Cost < 2*rest {
			t.Errorf("seed %d: %q costs %v, those of others %v, unexplained %v", seed, f.Text, f.Cost, others, rest)
		}
	}
}

// If KV transfers to one of several decode servers are slow from every prefill server, that server is named, and not a pair.
func TestSlowReceiverIsNamed(t *testing.T) {
	s := cluster.Find("slow_pair")
	c := s.Config(1)
	receiver, other := c.Faults[0].Other, c.Faults[0]
	other.Server = 1 - other.Server
	c.Faults = append(c.Faults, other)
	set, truth := testset.ClusteredAs(t, s, c)
	f := &New(Input{Requests: set}).Findings[0]
	host := truth.Lives[receiver].Host
	if f.Kind != finding.Transfer || f.At.Host != host || !strings.Contains(f.Text, "go to decode TP0 ("+host+"), from all of the prefill ranks") {
		t.Errorf("%s is slow to receive: %v at %q: %q", host, f.Kind, f.At.Host, f.Text)
	}
}
