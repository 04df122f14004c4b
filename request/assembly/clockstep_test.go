package assembly_test

import (
	"bytes"
	"testing"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/assembly"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// stepped returns a table in which the clock of some rows is set by an amount at a given time.
func stepped(d *spantable.Table, of func(i int) bool, at trace.Time, by int64) *spantable.Table {
	out := spantable.New(&trace.Diags{})
	out.Syms, out.Args, out.Files, out.Origins, out.Resources = d.Syms, d.Args, d.Files, d.Origins, d.Resources
	move := func(t trace.Time) trace.Time {
		if t >= at {
			return t + trace.Time(by)
		}
		return t
	}
	for i := range d.Len() {
		span := d.Span(i)
		var events []spantable.Event
		for e := range d.Events(i) {
			events = append(events, *e)
		}
		if of(i) {
			span.Start, span.End = move(span.Start), move(span.End)
			for k := range events {
				events[k].Time = move(events[k].Time)
			}
		}
		var links []spantable.Link
		for l := range d.Links(i) {
			links = append(links, l)
		}
		out.Add(&span, events, links)
	}
	return out
}

// A clock that is set forward mid-run is found, with its host, time, and amount. After the
// correction, all requests have their true durations. If no clock was set, none is found.
func TestRateOfClockSteps(t *testing.T) {
	seeds := testset.FirstSeeds(t, 2)
	const by = 1_000_000_000
	right := testset.CountSeeds(seeds, func(seed uint64) bool {
		c := simulator.DefaultConfig(seed)
		c.Requests, c.Mode = 120, testset.DisaggregatedModes[seed%2]
		dump, _ := testinput.Simulate(t, c)
		d := spantable.New(&trace.Diags{})
		if err := otlpjson.Read(d, "sim", bytes.NewReader(dump)); err != nil {
			t.Fatal(err)
		}
		whole := assembly.Build(d).Set
		if none := whole.ClockSteps(); len(none) > 0 {
			t.Logf("seed %d: %+v where no clock was set", seed, none)
			return false
		}
		var host string
		for i := range whole.Procs {
			if p := &whole.Procs[i]; p.Role == request.Decode || host == "" {
				host = p.Host
			}
		}
		first, last, _ := whole.Bounds()
		at := first + (last-first)/2
		a := assembly.Build(stepped(d, func(i int) bool { p := whole.ProcOf(i); return p >= 0 && whole.Procs[p].Host == host }, at, by))
		a.Unstep()
		got := a.Set
		if len(got.Steps) != 1 || got.Steps[0].Clock.Host != host {
			t.Logf("seed %d: steps %+v, want one of %s", seed, got.Steps, host)
			return false
		}
		x := got.Steps[0]
		if off, late := x.By-by, int64(x.At-at)-by; max(off, -off) > x.Err+1_000_000 || max(late, -late) > 2_000_000_000 {
			t.Logf("seed %d: step %+v is off by %d ns, %d ns late", seed, x, off, late)
			return false
		}
		for i := range got.Requests {
			if d := got.Requests[i].Metrics.ITL.Max; d > by {
				t.Logf("seed %d: a gap between tokens of %d ns", seed, d)
				return false
			}
		}
		return true
	})
	testset.Rate(t, "a clock that is set by a second, and none that is not", right, len(seeds), 95)
}
