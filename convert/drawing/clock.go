package drawing

import (
	"cmp"

	"github.com/sgtrace/sgtrace/trace"
)

// addClocks gives every host a clock and notes in the trace how they relate.
// Spans carry the Unix time of the host that emitted them; that hosts agree is
// assumed, and nothing is shifted.
func (l *layout) addClocks(b *trace.Builder) {
	byHost := map[string]trace.ClockID{}
	l.clocks = make([]trace.ClockID, len(l.set.Procs))
	reference := trace.ClockID(0)
	for p := range l.set.Procs {
		proc := &l.set.Procs[p]
		clock, ok := byHost[proc.Host]
		if !ok {
			clock = b.Clock(trace.Clock{Domain: b.Intern("unix"), Host: b.Intern(proc.Host)})
			byHost[proc.Host] = clock
			why := trace.SyncAssumed
			if reference == 0 {
				reference, why = clock, trace.SyncRecorded
			}
			b.Sync(trace.Sync{A: reference, B: clock, Why: why})
			b.Attribute("sgtrace.clock."+cmp.Or(proc.Host, "unknown host"), why.String()+": Unix time of the host, offset 0")
		}
		l.clocks[p] = clock
	}
}
