package drawing

import (
	"cmp"

	"github.com/sgtrace/sgtrace/trace"
)

// noteClocks notes in the trace how the clocks of hosts relate. Spans carry the Unix time of
// the host that emitted them; that hosts agree is assumed, and nothing is shifted.
func (l *layout) noteClocks(b *trace.Builder) {
	noted := map[string]bool{}
	for p := range l.set.Procs {
		host, why := l.set.Procs[p].Host, trace.SyncAssumed
		if len(noted) == 0 {
			why = trace.SyncRecorded
		}
		if !noted[host] {
			noted[host] = true
			b.Attribute("sgtrace.clock."+cmp.Or(host, "unknown host"), why.String()+": Unix time of the host, offset 0")
		}
	}
}
