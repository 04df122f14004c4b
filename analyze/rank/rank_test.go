package rank

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// tpBatch adds the decode steps of requests in one batch, on two ranks. The second
// rank ends step i late by late[i] us.
func tpBatch(d *testset.Dump, requests int, late []float64) {
	for r := range requests {
		id := string(rune('a' + r))
		root := testset.Span{Trace: "0000000000000000000000000000000" + id, Name: " Req " + strings.Repeat(id, 8), From: 0, To: 1_000_000,
			Attrs: testset.Attrs{"rid": strings.Repeat(id, 12), "module": "sglang::request", "gen_ai.usage.completion_tokens": len(late) + 1, "gen_ai.usage.prompt_tokens": 10}}
		rootID := d.Add(root)
		for tp := range 2 {
			stamp := float64(3 * r) // the requests of a batch are stamped one after another
			stages := []testset.Span{
				{Name: "prefill_waiting", From: 0, To: 1000},
				{Name: "prefill_forward", From: 1000, To: 5000 + stamp},
				{Name: "decode_forward", From: 5000 + stamp, To: 900_000},
			}
			from := 5000 + stamp
			for k, by := range late {
				to := 10_000*float64(k+2) + stamp + by*float64(tp)
				stages = append(stages, testset.Span{Name: "decode_loop", Parent: "^", From: from, To: to, Attrs: testset.Attrs{"decode_ct": k}})
				from = to
			}
			d.Thread(root, rootID, testset.DecodeHost, "Scheduler", tp, 100+tp, stages...)
		}
	}
}

// A batch of several requests is one step.
func TestBatchIsOneStep(t *testing.T) {
	var d testset.Dump
	tpBatch(&d, 5, []float64{2000, 0, -500, 2000})
	r := Measure(place.Of(d.Set(t)))
	if len(r.Groups) != 2 {
		t.Fatalf("%d groups, want decode steps and prefills", len(r.Groups))
	}
	g := r.Groups[0]
	if g.Steps != 4 || g.Kind != DecodeStep || r.Groups[1].Steps != 1 {
		t.Errorf("%d steps of kind %v and %d prefills, want 4 and 1", g.Steps, g.Kind, r.Groups[1].Steps)
	}
	const us = 1000
	want := []straggler.Lateness{
		{SyncPoints: 4, Last: 1, P50: -2000 * us, P99: 500 * us, Mean: -875 * us, LastMean: 500 * us, Lost: 500 * us},
		{SyncPoints: 4, Last: 2, P50: 0, P99: 2000 * us, Mean: 875 * us, LastMean: 2000 * us, Lost: 4000 * us},
	}
	for rank, got := range g.Late {
		got.LostShare = 0
		if got != want[rank] {
			t.Errorf("TP%d: %+v, want %+v", rank, got, want[rank])
		}
	}
	// The first step begins at the end of the prefill. All belong to the first rank.
	took := int64(0)
	for _, p := range g.gathering.SyncPoints {
		took += p.Took
	}
	if want := int64(20_000-5000+3*10_000) * us; took != want {
		t.Errorf("steps took %d ns, want %d", took, want)
	}
}

// Steps whose spans are lost on one rank are dropped and counted; the others keep their numbers.
func TestLostStepsAreLeftOut(t *testing.T) {
	var d testset.Dump
	tpBatch(&d, 1, []float64{100, 200, 300, 400})
	d.Lines = slices.DeleteFunc(d.Lines, func(line string) bool {
		return strings.Contains(line, `"decode_ct","value":{"intValue":"1"}`) && strings.Contains(line, "30200000") // on TP1
	})
	r := Measure(place.Of(d.Set(t)))
	g := r.Groups[0]
	if l := g.Late[1]; g.Steps != 3 || l.P50 != 300_000 || l.Last != 3 || r.skipped.alone != 1 {
		t.Errorf("%d steps, %+v, %d left out", g.Steps, l, r.skipped.alone)
	}
	var out bytes.Buffer
	if err := r.Reports()[1].Write(&out, table.FormatText, table.Style{}); err != nil {
		t.Fatal(err)
	}
	if want := "1 step left out"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
}

// The group's steps, and how often and by how much the planted straggler is late, are as played.
func TestStepsAreThoseThatWerePlayed(t *testing.T) {
	for seed := range uint64(6) {
		c := withStraggler(seed, 1.2, false)
		c.Cancels, c.Impatient, c.Requests = 0, 0, 100
		s, truth := testset.Simulated(t, c)
		want := truth.Straggler
		for _, g := range Measure(place.Of(s)).Groups {
			rank := slices.IndexFunc(g.Ranks, func(p place.Location) bool { return p.Rank.String() == want.Rank && p.Role.String() == want.Role })
			if g.Kind != DecodeStep || rank < 0 {
				continue
			}
			const grid = 512 // ns
			l := g.Late[rank]
			if l.SyncPoints != want.Steps || l.Last != want.LastSteps || max(l.Mean-want.MeanLatenessNs, want.MeanLatenessNs-l.Mean) > grid {
				t.Errorf("seed %d: %+v, want %+v", seed, l, *want)
			}
		}
	}
}

// The load of every rank equals an independent count.
func TestLoadOfRanks(t *testing.T) {
	for seed := range uint64(3) {
		c := testset.Calm(seed)
		c.Requests, c.Mode, c.KVTokens = 80, simulator.Mode(seed), 3200
		s, _ := testset.Simulated(t, c)
		loads := Measure(place.Of(s)).Loads
		wants, most := make([]brute, len(loads)), map[request.Role]int{}
		for i := range loads {
			wants[i] = bruteLoad(s, &loads[i].Location)
			most[loads[i].Location.Role] = max(most[loads[i].Location.Role], wants[i].most)
		}
		for i := range loads {
			l, want := &loads[i], wants[i]
			busy := want.busy
			if l.Location.Role != request.Prefill {
				busy = want.running / float64(most[l.Location.Role])
			}
			if l.Requests != want.requests || l.Output >= 0 && l.Output != want.output || l.Retractions != want.retractions {
				t.Errorf("seed %d, %s: %d requests, %d tokens, %d retractions; want %+v", seed, l.Location.String(), l.Requests, l.Output, l.Retractions, want)
			}
			if math.Abs(l.Busy-busy) > 2e-3 { // estimated from 5000 instants
				t.Errorf("seed %d, %s: busy %v, want %v", seed, l.Location.String(), l.Busy, busy)
			}
		}
	}
}

type brute struct {
	requests, output, retractions int64
	busy, running                 float64
	most                          int // maximum running at once
}

// bruteLoad measures a rank span by span: busy and running in small time steps, and
// the maximum running at each start.
func bruteLoad(s *request.Set, where *place.Location) brute {
	var b brute
	first, last := s.Requests[0].Start, s.Requests[0].End
	for i := range s.Requests {
		first, last = min(first, s.Requests[i].Start), max(last, s.Requests[i].End)
	}
	const cells = 5000
	running := make([]int, cells)
	var intervals []request.Interval
	for t := range s.Threads {
		p := &s.Procs[s.Threads[t].Proc]
		if p.Rank != where.Rank || p.Role != where.Role || p.Label != where.Label {
			continue
		}
		b.requests++
		busy := make([]bool, cells)
		for i := range s.ThreadRows(t) {
			span := s.Row(i)
			for _, e := range s.InstantsOf(i) {
				if s.Syms.Name(e.Name) == "retract" {
					b.retractions++
				}
			}
			if s.Name(i) == "decode_bootstrap" && s.Kind(s.Tree.Parent(i)) == request.Stage {
				b.retractions-- // it re-enters the queue, which is reported the same way
			}
			name := s.Name(i)
			if name == "decode_loop" || name == "fake_output" || name == "prefill_forward" && p.Role == request.Unified {
				b.output++
			}
			switch name {
			case "prefill_forward", "decode_forward", "decode_loop", "fake_output":
			case "decode_waiting":
				if p.Role != request.Unified {
					continue
				}
			default:
				continue
			}
			if s.Kind(s.Tree.Parent(i)) != request.Stage {
				intervals = append(intervals, request.Interval{From: span.Start, To: span.End})
			}
			for c := range cells {
				at := first + trace.Time(float64(last-first)*(float64(c)+0.5)/cells)
				busy[c] = busy[c] || span.Start <= at && at < span.End
			}
		}
		for c, is := range busy {
			if is {
				running[c]++
			}
		}
	}
	for _, n := range running {
		b.running += float64(n) / cells
		b.busy += float64(min(n, 1)) / cells
	}
	b.most = bruteMost(intervals)
	return b
}

// bruteMost returns the maximum number of intervals that cover the start of one.
func bruteMost(intervals []request.Interval) (most int) {
	for _, at := range intervals {
		n := 0
		for _, iv := range intervals {
			if at.From < at.To && iv.From <= at.From && at.From < iv.To {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// Damaged dumps are measured as far as possible, and a straggler is still found.
func TestRanksOfDamagedDumps(t *testing.T) {
	for seed := range uint64(3) {
		c := withStraggler(seed, 1.3, false)
		dump, truth := testinput.Simulate(t, c)
		s := testset.BuildSet(t, "damaged", bytes.NewReader(testset.WithoutSpans(dump, seed)))
		if !foundPlanted(t, seed, Measure(place.Of(s)).Stragglers(), truth, false) {
			t.Errorf("seed %d: the straggler is not found", seed)
		}
	}
}

// Ranks are compared only with those on their own host, and the report says so.
func TestRanksOfSeveralHosts(t *testing.T) {
	c := withStraggler(0, 1.2, false)
	c.Mode, c.Requests = simulator.Unified, 100
	c.Unified, c.RanksPerHost, c.HostSkew = simulator.Parallel{TP: 4, PP: 2, DP: 1}, 2, 20_000_000
	c.Straggler = simulator.Straggler{TP: 3, PP: 1, Factor: 1.3}
	s, _ := testset.Simulated(t, c)
	r := Measure(place.Of(s))
	found := r.Stragglers()
	if len(found) == 0 || found[0].Location.String() != "PP1 TP3" {
		t.Errorf("found %+v", found)
	}
	for _, g := range r.Groups {
		if len(g.Ranks) != 2 || g.Ranks[0].Host != g.Ranks[1].Host {
			t.Errorf("%s compares %v", g.Name, g.Ranks)
		}
	}
	out := testset.Text(t, r.Reports()[1], table.FormatText, table.Style{})
	if want := "2 groups of ranks on several hosts"; !strings.Contains(out, want) {
		t.Errorf("no %q in\n%s", want, out)
	}
}

// With nothing to compare, no straggler is found, and the verdict says why.
func TestVerdictWithoutRanks(t *testing.T) {
	if got := Measure(place.Of(testset.Fixture(t))).Verdict(); got != "Not enough data to find stragglers: 1 prefill, 40 needed" {
		t.Errorf("%q", got)
	}
	if got := new(Ranks).Verdict(); got != "No straggler found: there are no TP ranks on one host to compare" {
		t.Errorf("%q", got)
	}
}

// Under even routing, improbable shares are as rare as their p-value, even if
// requests of a session follow each other to the same rank.
func TestSharesByChance(t *testing.T) {
	const runs, most = 500, 4
	for _, session := range []float64{0, 0.5, 0.8} { // probability that the next request is of the same session
		alarms := 0
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, 5))
			ranks := make([]*Load, 2+rng.IntN(7))
			for i := range ranks {
				ranks[i] = &Load{}
			}
			at := rng.IntN(len(ranks))
			for i := range 200 + rng.IntN(800) {
				if rng.Float64() >= session {
					at = rng.IntN(len(ranks))
				}
				ranks[at].arrivals = append(ranks[at].arrivals, trace.Time(i))
				ranks[at].Requests++
			}
			if d := (&Ranks{}).newBalance(ranks, 0); d.P <= straggler.ErrorLevel {
				alarms++
			}
		}
		if alarms > most {
			t.Errorf("sessions of %v: %d of %d runs are improbable", 1/(1-session), alarms, runs)
		}
	}
}

// The even share of a rank only counts the time during which it was there, and the shares of the others rise accordingly.
func TestBalanceAmongThoseThatAreThere(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 5))
	at := func(there func(i int) int) []*Load {
		ranks := []*Load{{}, {}, {}}
		for i := range 1200 {
			l := ranks[there(i)]
			l.arrivals, l.Requests = append(l.arrivals, trace.Time(i)), l.Requests+1
		}
		return ranks
	}
	d := (&Ranks{}).newBalance(at(func(i int) int { // the third one leaves
		if i < 400 {
			return rng.IntN(3)
		}
		return rng.IntN(2)
	}), 0)
	if want := (400/3.0 + 800/2.0) / 1200; d.P <= straggler.ErrorLevel || math.Abs(d.Even-want) > 0.01 {
		t.Errorf("one goes: p %v, an even share is %v, want %v", d.P, d.Even, want)
	}
	d = (&Ranks{}).newBalance(at(func(i int) int { // the third one gets little all the time
		if i%6 == 0 {
			return 2
		}
		return rng.IntN(2)
	}), 0)
	if d.P > straggler.ErrorLevel || math.Abs(d.Even-1/3.0) > 0.01 {
		t.Errorf("one gets little: p %v, an even share is %v", d.P, d.Even)
	}
}

func TestGoldenRanks(t *testing.T) {
	c := withStraggler(2, 1.15, true)
	c.Requests, c.Level = 120, 4
	c.Unified = simulator.Parallel{TP: 2, PP: 2, DP: 2}
	c.Straggler.TP, c.Straggler.PP = 1, 1
	s, _ := testset.Simulated(t, c)
	for _, f := range []table.Format{table.FormatText, table.FormatJSON} {
		var out strings.Builder
		for _, r := range Measure(place.Of(s)).Reports() {
			out.WriteString(testset.Text(t, r, f, table.Style{}))
			out.WriteString("\n")
		}
		testset.CompareGolden(t, "byrank."+string(f), out.String())
	}
}

// DP attention has one scheduler per DP rank: there is nothing to compare, and the verdict says so.
func TestVerdictOnDPAttention(t *testing.T) {
	loads := func(ranks ...string) *Ranks {
		r := &Ranks{}
		for _, name := range ranks {
			rank, err := trace.ParseRank(name)
			if err != nil {
				t.Fatal(err)
			}
			r.Loads = append(r.Loads, Load{Location: place.Location{Scope: place.OneRank, Role: request.Unified, Host: "a", Rank: rank}})
		}
		return r
	}
	for _, c := range []struct {
		ranks *Ranks
		want  bool
	}{
		{loads("TP0-PP0-DP0", "TP1-PP0-DP1", "TP2-PP0-DP2"), true},
		{loads("TP0-PP0-DP0", "TP1-PP0-DP0"), false},
		{loads("TP0-PP0-DP0", "TP0-PP0-DP1"), false},
		{loads("TP0-PP0-DP0"), false},
		{loads("TP0-PP0", "TP1-PP0"), false},
		{loads(), false},
	} {
		if got := strings.Contains(c.ranks.Verdict(), "each DP rank has one scheduler"); got != c.want {
			t.Errorf("%s of %d ranks", c.ranks.Verdict(), len(c.ranks.Loads))
		}
	}
}

// startedLate returns 120 requests on a server of four ranks. From the 50th on, TP2 begins each prefill 30
// ms late, and all end it waited times as much later. It decodes in step with the others.
func startedLate(t *testing.T, waited float64) *Ranks {
	var d testset.Dump
	for i := range 120 {
		id, at := fmt.Sprintf("%032x", i+1), 1_000_000*float64(i)
		root := testset.Span{Trace: id, Name: " Req " + id[24:], From: at, To: at + 400_000,
			Attrs: testset.Attrs{"rid": id, "module": "sglang::request", "gen_ai.usage.completion_tokens": 4, "gen_ai.usage.prompt_tokens": 1000}}
		rootID := d.Add(root)
		for tp := range 4 {
			late, end := float64(3*tp), at+82_000+float64(i*7%11*100) // us
			if i >= 50 {
				if end += 30_000 * waited; tp == 2 {
					late = 30_000
				}
			}
			d.Thread(root, rootID, testset.DecodeHost, "Scheduler", tp, 100+tp,
				testset.Span{Name: "prefill_waiting", From: at + 1000, To: at + 2000 + late},
				testset.Span{Name: "prefill_forward", From: at + 2000 + late, To: end + float64((i+tp)%4)},
				testset.Span{Name: "decode_forward", From: end + float64((i+tp)%4), To: at + 390_000})
		}
	}
	return Measure(place.Of(d.Set(t)))
}

// A rank that begins prefills late keeps the others waiting, even if all end together. If
// prefills do not take longer, it keeps nobody waiting.
func TestRankBeginsLate(t *testing.T) {
	r := startedLate(t, 1)
	late := r.Stragglers()
	if len(late) != 1 {
		t.Fatalf("%d stragglers, want TP2: %+v", len(late), late)
	}
	const want = "begins last in 70 of 70 prefills"
	s := &late[0]
	if text := s.Text(); s.Location.Rank.TP != 2 || !strings.Contains(text, want) || s.LastMean < 29_900_000 || s.LastMean > 30_000_000 || s.Slack {
		t.Errorf("%s, by %d ns", text, s.LastMean)
	}
	if begun := s.Since - late[0].Earliest; begun < 0 || s.Latest < s.Since || math.Abs(s.LostShare-30.0/110) > 0.01 {
		t.Errorf("since %d (%d to %d), lost %v", s.Since, s.Earliest, s.Latest, s.LostShare)
	}
	if late := startedLate(t, 0).Stragglers(); len(late) != 0 {
		t.Errorf("nobody waits: %+v", late)
	}
}
