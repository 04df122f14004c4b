package assembly

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// without returns the set assembled without some spans.
func without(d *spantable.Table, lost func(i int) bool) *request.Set {
	left := spantable.New(&trace.Diags{})
	left.Syms, left.Args, left.Files, left.Origins, left.Resources = d.Syms, d.Args, d.Files, d.Origins, d.Resources
	for i := range d.Len() {
		if lost(i) {
			continue
		}
		var events []spantable.Event
		for e := range d.Events(i) {
			events = append(events, *e)
		}
		var links []spantable.Link
		for l := range d.Links(i) {
			links = append(links, l)
		}
		left.Add(new(d.Span(i)), events, links)
	}
	return Build(left).Set
}

// A victim is a request that loses spans.
type victim struct {
	*request.Set
	request int
}

// part returns the part with a role, and its ranks in order.
func (v victim) part(role request.Role) (*request.Part, []int) {
	for _, p := range v.PartsOf(&v.Requests[v.request]) {
		part := &v.Parts[p]
		if part.Role != role {
			continue
		}
		ranks := slices.DeleteFunc(slices.Clone(v.ThreadsOf(part)), func(t int) bool { return !v.OnScheduler(t) })
		slices.SortFunc(ranks, func(a, b int) int {
			return int(v.Procs[v.Threads[a].Proc].Rank.TP) - int(v.Procs[v.Threads[b].Proc].Rank.TP)
		})
		return part, ranks
	}
	return nil, nil
}

// stages returns a rank's stages with a meaning, in order.
func (v victim) stages(role request.Role, tp int, means request.Meaning) (rows []int) {
	_, ranks := v.part(role)
	v.EachStage(v.StagesOf(ranks[tp]), func(i int) {
		if v.Row(i).Means == means {
			rows = append(rows, i)
		}
	})
	return rows
}

// missingRules are cases of lost spans, and how many of the losses are detected.
var missingRules = []struct {
	name string
	lost func(v victim) []int // rows
	// shown returns how many of the lost rows are detected; the request is incomplete anyway.
	shown func(lost int) int
	// beside means that the loss does not affect the sum of the request's times.
	beside bool
}{
	{"the request span of a server", func(v victim) []int { p, _ := v.part(request.Decode); return []int{p.Root} }, all, false},
	{"the gateway's span", func(v victim) []int { return []int{v.Requests[v.request].Gateway} }, none, false},
	{"a thread span", func(v victim) []int { _, ranks := v.part(request.Decode); return []int{v.Threads[ranks[0]].Row} }, all, false},
	{"a step in the middle, on one rank", func(v victim) []int { return v.stages(request.Decode, 1, request.Stepping)[2:3] }, all, true},
	{"the last steps, on one rank", func(v victim) []int { s := v.stages(request.Decode, 1, request.Stepping); return s[len(s)-2:] }, all, true},
	{"the last steps, on all ranks", func(v victim) []int {
		s, o := v.stages(request.Decode, 0, request.Stepping), v.stages(request.Decode, 1, request.Stepping)
		return append(s[len(s)-3:], o[len(o)-3:]...)
	}, none, false}, // no later step gives their numbers
	{"the stage that decodes", func(v victim) []int { return v.stages(request.Decode, 0, request.Answering) }, all, false}, // steps are nested in it
	{"the stage that prefills", func(v victim) []int { return v.stages(request.Prefill, 0, request.Prefilling) }, all, false},
	{"the stage that sends", func(v victim) []int { return v.stages(request.Prefill, 0, request.Sending) }, none, false}, // nothing follows it
}

func all(lost int) int { return lost }
func none(int) int     { return 0 }

// dumpWith returns the spans of a simulated dump, and one of its requests with several steps.
func dumpWith(t *testing.T, mode simulator.Mode, rate float64, role request.Role) (*spantable.Table, victim) {
	t.Helper()
	c := simulator.DefaultConfig(3)
	c.Mode, c.Requests, c.Rate, c.Incident, c.Straggler = mode, 60, rate, simulator.Incident{Onset: 1}, simulator.Straggler{}
	c.SlowTransfers, c.FailedTransfers, c.Cancels, c.Impatient, c.KVTokens = 0, 0, 0, 0, 16384
	dump, _ := testinput.Simulate(t, c)
	d := spantable.New(&trace.Diags{})
	if err := otlpjson.Read(d, "sim", bytes.NewReader(dump)); err != nil {
		t.Fatal(err)
	}
	spantable.NewTree(d) // numbers the spans in row order
	v := victim{without(d, func(int) bool { return false }), 20}
	for len(v.stages(role, 1, request.Stepping)) < 8 {
		v.request++
	}
	if n := incomplete(v.Set); len(v.Missing) > 0 || len(n) > 0 {
		t.Fatalf("%d spans of a whole dump are missing, %d requests incomplete", len(v.Missing), len(n))
	}
	return d, v
}

// Each rule detects its losses, attributes them to the request and the process that lost them, and
// reports nothing else.
func TestRulesOfMissingSpans(t *testing.T) {
	d, v := dumpWith(t, simulator.PDGateway, 6, request.Decode)
	id := v.TraceID(&v.Requests[v.request])
	for _, rule := range missingRules {
		lost := rule.lost(v)
		got := without(d, func(i int) bool { return slices.Contains(lost, i) })
		if ids := incomplete(got); !slices.Equal(ids, []string{id}) {
			t.Errorf("%s is lost: requests %q are incomplete, want %s", rule.name, ids, id)
		}
		if got.Requests[v.request].Complete() != rule.beside {
			t.Errorf("%s is lost: %v", rule.name, got.Requests[v.request].Flags)
		}
		if want := rule.shown(len(lost)); len(got.Missing) != want {
			t.Errorf("%s is lost: %d spans are told to be missing, want %d", rule.name, len(got.Missing), want)
		}
		for _, m := range got.Missing {
			row := v.Row(lost[0])
			if p, q := &got.Procs[m.Proc], &v.Procs[row.Proc]; p.Label != q.Label || p.Rank != q.Rank {
				t.Errorf("%s is lost: of %s %v, want %s %v", rule.name, p.Label, p.Rank, q.Label, q.Rank)
			}
			if away := int64(m.Time - row.End); max(away, -away) > 1e9 {
				t.Errorf("%s is lost: at a time that is %d ns away", rule.name, away)
			}
		}
	}
	checkLostRank(t, d, v)
}

// checkLostRank removes everything that one rank wrote for a request. No remaining span refers to
// it, so the loss cannot be detected.
func checkLostRank(t *testing.T, d *spantable.Table, v victim) {
	t.Helper()
	_, ranks := v.part(request.Decode)
	rows := slices.Collect(v.ThreadRows(ranks[1]))
	got := without(d, func(i int) bool { return slices.Contains(rows, i) })
	if n := len(got.Missing); n > 0 {
		t.Errorf("all %d spans of a rank of a request are lost, and nothing shows it: %d are told to be missing", len(rows), n)
	}
}

// If the part's span, which alone states its role, and a rank's stage around its steps are both
// lost, the steps are still assigned to that rank, and do not count as lost.
func TestStepsOfLostRole(t *testing.T) {
	d, v := dumpWith(t, simulator.Unified, 3, request.Unified)
	p, _ := v.part(request.Unified)
	rows := append(v.stages(request.Unified, 1, request.Answering), p.Root)
	got := without(d, func(i int) bool { return slices.Contains(rows, i) })
	if n := len(got.Missing); n != len(rows) {
		t.Errorf("%d spans are lost, %d are told to be missing", len(rows), n)
	}
}

// A slow response may not have been exported when the dump ends, so its span is not lost. The span
// of a request that would have been exported by then is.
func TestAnswersThatAreNotOut(t *testing.T) {
	d, v := dumpWith(t, simulator.Unified, 3, request.Unified)
	behind := func(lost func(part *request.Part) bool, slow trace.Time) *request.Set {
		late, roots := spantable.New(&trace.Diags{}), map[int]bool{}
		late.Syms, late.Args, late.Files, late.Origins, late.Resources = d.Syms, d.Args, d.Files, d.Origins, d.Resources
		end := trace.Time(0)
		for i := range d.Len() {
			end = max(end, d.Span(i).End)
		}
		for i := range v.Parts {
			roots[v.Parts[i].Root] = lost(&v.Parts[i])
		}
		for i := range d.Len() {
			span := d.Span(i)
			if is, root := roots[i]; root {
				if span.End += slow; is || span.End > end {
					continue
				}
			}
			var links []spantable.Link
			for l := range d.Links(i) {
				links = append(links, l)
			}
			late.Add(&span, nil, links)
		}
		return Build(late).Set
	}
	none := func(*request.Part) bool { return false }
	if n := len(behind(none, 8e9).Missing); n > 0 {
		t.Errorf("%d spans are told to be missing that are not out", n)
	}
	middle := &v.Requests[v.request]
	one := func(part *request.Part) bool { return &v.Requests[part.Request] == middle }
	if n := len(behind(one, 1e9).Missing); n != 1 {
		t.Errorf("%d spans are told to be missing, want 1", n)
	}
}

// incomplete returns the trace ids of the requests with missing spans.
func incomplete(s *request.Set) (ids []string) {
	for i := range s.Requests {
		if r := &s.Requests[i]; !r.HasAllSteps() {
			ids = append(ids, s.TraceID(r))
		}
	}
	return ids
}

// Stages whose thread span is missing belong to the rank that their service instance identifies. If it does not, because processes have
// none (until 2026-06) or one process exports the spans of a whole server (SGLANG_TRACE_ASYNC=1), they still belong to the host of that
// server. The stages of two ranks are never taken for those of one.
func TestHostsOfOrphans(t *testing.T) {
	d, v := dumpWith(t, simulator.PDGateway, 6, request.Decode)
	_, ranks := v.part(request.Decode)
	own, host := slices.Clone(d.Resources), v.Procs[v.Threads[ranks[0]].Proc].Host
	for form, instance := range map[string]func(before trace.Sym, host string) trace.Sym{
		"each process":  func(before trace.Sym, _ string) trace.Sym { return before },
		"none":          func(trace.Sym, string) trace.Sym { return 0 },
		"one of a host": func(_ trace.Sym, host string) trace.Sym { return d.Syms.Intern("exporter of " + host) },
	} {
		for i := range d.Len() {
			r := d.Origins[v.Row(i).Source].Resource
			d.Resources[r].Instance = instance(own[r].Instance, v.Procs[v.Row(i).Proc].Host)
		}
		got := victim{without(d, func(i int) bool { return i == v.Threads[ranks[0]].Row || i == v.Threads[ranks[1]].Row }), v.request}
		part, _ := got.part(request.Decode)
		n := 0
		for _, thread := range got.ThreadsOf(part) {
			proc := &got.Procs[got.Threads[thread].Proc]
			if got.Threads[thread].Row != request.None || strings.Contains(proc.Label, "Tokenizer") {
				continue
			}
			if n++; proc.Host != host || proc.Role != request.Decode || (proc.Rank.Known() > 0) != (form == "each process") {
				t.Errorf("instances of %s: %+v, want host %s", form, proc, host)
			}
		}
		if n != 2 {
			t.Errorf("instances of %s: %d threads without a span, want those of both ranks", form, n)
		}
		if was, is := &v.Requests[v.request].Metrics, &got.Requests[v.request].Metrics; is.Queue != was.Queue || is.Decode != was.Decode || is.Transfer != was.Transfer || is.ITL != was.ITL {
			t.Errorf("instances of %s: the times of both ranks are mixed up: %+v, want %+v", form, is, was)
		}
	}
}
