package assembly

import (
	"github.com/sgtrace/sgtrace/request"
)

// resolveStrays gives the threads whose role nobody tells, as the span of their request is
// missing, to the proc that is the same but for the role. If there is none yet, the role
// is that of all other schedulers, if they have one. What else an instance wrote is of that proc, too.
func (b *builder) resolveStrays() {
	known := map[request.Proc]int{}
	only, several := request.Other, false
	for i := range b.Procs {
		p := b.Procs[i]
		if p.Role == request.Other {
			continue
		}
		if p.Schedules {
			several = several || only != request.Other && only != p.Role
			only = p.Role
		}
		p.Role = request.Other
		known[p] = i
	}
	if several {
		only = request.Other
	}
	same := make([]int, len(b.Procs)) // which one a proc is
	clear(b.instances)
	for i := range b.Procs {
		same[i] = i
		if p := &b.Procs[i]; p.Role == request.Other {
			if k, ok := known[*p]; ok {
				same[i] = k
			} else if p.Schedules {
				p.Role = only
			}
		}
		b.noteInstance(b.Procs[i].Instance, same[i])
	}
	for t := range b.AllThreads() {
		b.Threads[t].Proc = same[b.Threads[t].Proc]
	}
}
