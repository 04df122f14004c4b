package assembly

import (
	"github.com/sgtrace/sgtrace/request"
)

// resolveStrays gives the threads whose role nobody tells, as the span of their request is
// missing, to the proc that is the same but for the role. If there is none yet, the role
// is that of all other schedulers, if they have one.
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
	for t := range b.AllThreads() {
		th := &b.Threads[t]
		p := &b.Procs[th.Proc]
		if p.Role != request.Other {
			continue
		}
		if i, ok := known[*p]; ok {
			th.Proc = i
		} else if p.Schedules {
			p.Role = only
		}
	}
	for i := range b.AllParts() {
		if p := &b.Parts[i]; p.Root == request.None {
			b.finishHeadless(p)
		}
	}
}
