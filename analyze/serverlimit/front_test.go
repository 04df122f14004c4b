package serverlimit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// foundIn plays a scenario and returns its findings and the run.
func foundIn(t *testing.T, c cluster.Config) ([]finding.Finding, *cluster.Run) {
	t.Helper()
	run, err := cluster.Play(c)
	if err != nil {
		t.Fatal(err)
	}
	s := testset.OfCluster(t, run)
	list := cause.NewAttributor(place.Of(s)).All()
	found, check := FindFront(s).Findings(cause.NewCosts(s, list, cause.UsualOf(list)))
	if check.State() != finding.LookedAt {
		t.Errorf("%+v", check)
	}
	return found, run
}

// The process that holds requests up is found, with its start, and no other process is.
func TestWhoKeepsRequests(t *testing.T) {
	for _, want := range []struct{ scenario, subkind, text string }{
		{"gateway_holds", Gateway, "the gateway has held"},
		{"slow_tokenizer", Tokenizer, "the tokenizer of"},
		{"late_answers", Answering, "unified ("},
		{"slow_readers", Returning, ""},
	} {
		for _, seed := range []uint64{1, 2} {
			c := cluster.Find(want.scenario).Config(seed)
			found, run := foundIn(t, c)
			if len(found) != 1 || found[0].Subkind != want.subkind || !strings.HasPrefix(found[0].Text, want.text) {
				t.Errorf("%s %d: %v", want.scenario, seed, found)
				continue
			}
			const slack = trace.Time(10 * time.Second)
			fault := &c.Faults[0]
			onset := trace.Time(run.Start + int64(fault.At))
			if f := &found[0]; f.Since < onset-slack || f.Since > onset+slack {
				t.Errorf("%s %d: since %v, planted at %v", want.scenario, seed, f.Since, onset)
			}
			if name := run.Name(max(0, fault.Server)); (want.subkind == Tokenizer || want.subkind == Answering) && !strings.Contains(found[0].Text, name) {
				t.Errorf("%q does not name %s", found[0].Text, name)
			}
		}
	}
}

// In healthy runs, and in those with other faults, no process is found.
func TestNobodyKeepsRequests(t *testing.T) {
	for _, scenario := range []string{"mixed_models", "small_burst", "clock_step", "deploy_8"} {
		if found, _ := foundIn(t, cluster.Find(scenario).Config(1)); len(found) > 0 {
			t.Errorf("%s: %s", scenario, found[0].Text)
		}
	}
}

// From the middle on, a tokenizer occasionally processes images and holds up all requests that arrive meanwhile. Each
// spell counts once, whatever the number of its requests: frequent spells are found, and two spells are too few.
func TestSpellsThatBegin(t *testing.T) {
	const second, n = 1_000_000_000, 400
	for _, every := range []int{15, 100} { // number of requests between starts of spells
		d := FrontProcess{duty: tokenizes}
		for i := range n {
			v := visit{at: trace.Time(i+1) * second / 4, work: second / 1000}
			if i >= n/2 && i%every < 4 {
				v.work = second - int64(i%every)*second/4
			}
			d.add(v)
		}
		d.judge()
		if half := d.visits[n/2].at; (every == 15) != (d.Since != 0 && d.Earliest < half && d.Latest >= half-6*second && d.P < 0.001) {
			t.Errorf("every %d requests: since %v, from %v to %v, p = %g; planted at %v", every, d.Since, d.Earliest, d.Latest, d.P, half)
		}
	}
}

// Requests that wait for a tokenizer while it works on others are kept by it; those that wait while it has nothing to do are on their way.
func TestOnTheWay(t *testing.T) {
	for idle, want := range map[int64]bool{0: false, 95_000_000: true} {
		d := FrontProcess{duty: tokenizes, Usual: 1_000_000, kept: []visit{{wait: 100_000_000, work: 1_000_000, idle: idle}}}
		if got := d.isPath(); got != want {
			t.Errorf("idle for %d ns: %v", idle, got)
		}
	}
}

// From the middle on, a gateway stops for a second every 30 s. That begins with the first stop.
func TestRhythm(t *testing.T) {
	const second, n = 1_000_000_000, 1600
	d := FrontProcess{duty: sends}
	for i := range int64(n) {
		v := visit{at: trace.Time(i+1) * second / 4, work: second / 1000}
		if phase := i / 2 % 60; i >= n/2 && phase < 2 { // 30 s are 120 requests
			v.work = second - (i%120)*second/4
		}
		d.add(v)
	}
	d.judge()
	if half := trace.Time(n/2+1) * second / 4; d.every < 29.9 || d.every > 30.1 || d.Since < half-second || d.Since > half+30*second || !strings.Contains(d.text(), "every 30 s") {
		t.Errorf("every %g s since %d, planted at %d: %s", d.every, d.Since, half, d.text())
	}
}

// Two clocks drift 60 ms apart, or the way to a server becomes 30 ms longer in the middle: only that is reported.
func TestClocksThatDriftApart(t *testing.T) {
	const n, ms = 200, 1_000_000
	for _, sudden := range []bool{false, true} {
		d := FrontProcess{duty: tokenizes}
		for i := range int64(n) {
			late := 60 * ms * i / n
			if sudden {
				late = 30 * ms * (2 * i / n)
			}
			d.add(visit{at: trace.Time(i+1) * 1000 * ms, wait: ms + late, idle: ms + late, work: ms / 10})
		}
		if d.judge(); d.Since == 0 || d.creeps() == sudden {
			t.Errorf("suddenly: %v; late since %v, creeps: %v", sudden, d.Since, d.creeps())
		}
	}
}

// silentGateway plants a delay in a healthy run whose gateway does not log when it sends requests:
// requests that keep selects begin earlier at the gateway. late is true in the second half.
func silentGateway(t *testing.T, keep func(s *request.Set, r *request.Request, late bool) bool) ([]finding.Finding, *request.Set, trace.Time) {
	t.Helper()
	run, err := cluster.Play(cluster.Find("gateway_holds").Config(1))
	if err != nil {
		t.Fatal(err)
	}
	s := testset.OfCluster(t, run)
	for i := range s.Instants {
		s.Instants[i].Kind = request.OtherInstant
	}
	first, last := s.Requests[0].Start, s.Requests[0].Start
	for i := range s.Requests {
		first, last = min(first, s.Requests[i].Start), max(last, s.Requests[i].Start)
	}
	half := first + (last-first)/2
	for i := range s.Requests {
		r := &s.Requests[i]
		if r.Gateway == request.None {
			t.Fatal("no gateway")
		}
		part := &s.Parts[s.Answering(r)]
		late := r.Start > half
		s.Rows[r.Gateway].Start = s.Rows[part.Root].Start - 1_000_000 // removes the fault of the scenario
		s.Rows[r.Gateway].End = s.Rows[part.Root].End + 1_000_000
		if keep(s, r, late) {
			s.Rows[r.Gateway].Start -= 400_000_000
		}
	}
	list := cause.NewAttributor(place.Of(s)).All()
	found, _ := FindFront(s).Findings(cause.NewCosts(s, list, cause.UsualOf(list)))
	return found, s, half
}

// If a tokenizer is busy with other requests, requests wait for it before their span begins there. The
// gateway is not blamed for that, even if it does not log when it sends them.
func TestTokenizerBehindSilentGateway(t *testing.T) {
	c := cluster.Find("slow_tokenizer").Config(1)
	run, err := cluster.Play(c)
	if err != nil {
		t.Fatal(err)
	}
	s := testset.OfCluster(t, run)
	for i := range s.Instants {
		s.Instants[i].Kind = request.OtherInstant
	}
	list := cause.NewAttributor(place.Of(s)).All()
	found, _ := FindFront(s).Findings(cause.NewCosts(s, list, cause.UsualOf(list)))
	if len(found) != 1 || found[0].Subkind != Tokenizer || !strings.Contains(found[0].Text, run.Name(c.Faults[0].Server)) {
		t.Errorf("%v", found)
	}
}

// If a gateway does not log when it sends requests, a delay in it shows by how much longer it has them
// than its servers do. The finding says since when, and whether only requests to one server are delayed.
func TestGatewayWithoutEvents(t *testing.T) {
	const slack = trace.Time(15 * time.Second)
	third := func(r *request.Request) bool { return r.Start%3 == 0 }
	found, _, half := silentGateway(t, func(_ *request.Set, r *request.Request, late bool) bool { return late && third(r) })
	if len(found) != 1 || found[0].Subkind != Gateway || !strings.Contains(found[0].Text, "are in the gateway, or on the way, for 40") || !strings.Contains(found[0].Text, "before a server has them") {
		t.Fatalf("%v", found)
	}
	if f := &found[0]; f.Since < half-slack || f.Since > half+slack {
		t.Errorf("since %v, planted at %v", f.Since, half)
	}

	var name string
	found, _, _ = silentGateway(t, func(s *request.Set, r *request.Request, late bool) bool {
		proc := s.Parts[s.Answering(r)].Proc
		if name == "" {
			name = place.NewLocation(s, proc).Group()
		}
		return late && place.NewLocation(s, proc).Group() == name
	})
	if len(found) != 1 || !strings.Contains(found[0].Text, "on the way to "+name+", for ") {
		t.Errorf("to %s: %v", name, found)
	}

	found, _, _ = silentGateway(t, func(*request.Set, *request.Request, bool) bool { return true })
	if len(found) != 1 || found[0].Since != 0 || !strings.Contains(found[0].Text, "from start to end") {
		t.Errorf("always: %v", found)
	}
	if found, _, _ = silentGateway(t, func(*request.Set, *request.Request, bool) bool { return false }); len(found) > 0 {
		t.Errorf("healthy: %v", found)
	}
}

// Tokenizers of one server are not servers of their own.
func TestNamesOfTokenizers(t *testing.T) {
	worker := func(host string, i int) place.Location {
		return place.Location{Scope: place.OneRank, Role: request.Unified, Host: host, Label: fmt.Sprint("MultiTokenizer-", i), Rank: trace.NoRank}
	}
	all := []place.Location{worker("a", 0), worker("a", 1), worker("a", 2), worker("b", 0), worker("b", 1), worker("b", 2)}
	for _, c := range []struct {
		of    []place.Location
		peers int
		want  string
	}{
		{all[:1], 6, "MultiTokenizer-0, one of 3 tokenizers of unified (a), has been"},
		{all[:2], 6, "2 of 3 tokenizers of unified (a) have been"},
		{all[:3], 6, "the tokenizers of unified (a) have been"},
		{all[:4], 6, "the tokenizers of both unified servers have been"},
		{all[:1], 1, "the tokenizer of unified (a) has been"},
	} {
		d := FrontProcess{Location: c.of[0], duty: tokenizes, of: c.of[:1], peers: all[:c.peers], Since: 1, Earliest: 1, Latest: 1}
		for _, at := range c.of[1:] {
			d.join(&FrontProcess{Location: at, duty: tokenizes, Since: 1, Earliest: 1, Latest: 1})
		}
		if got := d.tokenizers(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A desk that nothing visited keeps nothing.
func TestDeskWithoutVisits(t *testing.T) {
	d := FrontProcess{duty: schedules}
	if d.again() || d.explains(&Limit{Kind: Room}) {
		t.Error("it keeps requests")
	}
}
