package gpu

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A CopyKind is all copies or fills of one operation on a device, such as
// "[CUDA memcpy Host-to-Device]".
type CopyKind struct {
	Name   string
	Copied walk.Copied
}

// copyKinds sums up copies by the symbol of their operation.
type copyKinds map[trace.Sym]*CopyKind

func (k copyKinds) of(name trace.Sym) *CopyKind {
	c := k[name]
	if c == nil {
		c = &CopyKind{}
		k[name] = c
	}
	return c
}

func (k copyKinds) add(c *profile.Copy) { k.of(c.Name).Copied.Add(c) }

func (k copyKinds) join(o copyKinds) {
	for name, c := range o {
		k.of(name).Copied.Join(&c.Copied)
	}
}

// list returns the kinds, those that took longest first.
func (k copyKinds) list(syms *trace.Symbols) []CopyKind {
	var out []CopyKind
	for name, c := range k {
		c.Name = syms.Name(name)
		out = append(out, *c)
	}
	sortCopies(out)
	return out
}

func sortCopies(list []CopyKind) {
	slices.SortFunc(list, func(a, b CopyKind) int {
		return cmp.Or(cmp.Compare(b.Copied.Time, a.Copied.Time), cmp.Compare(a.Name, b.Name))
	})
}

// muchMigrated is the part of the time from which on pages that move while kernels run are
// told of: the kernels wait for them.
const muchMigrated = 1.0 / 10

// Migrations tells whether pages of unified memory move while kernels run. Other copies that
// run beside kernels are hidden by them; these hold them up.
func (g *GPUs) Migrations() ([]finding.Finding, finding.Judged) {
	t, judged := g.time("page migrations")
	rows, moved := int64(0), int64(0)
	var pages walk.Copied
	for i := range g.GPUs {
		gpu := &g.GPUs[i]
		if rows += gpu.Migrated; 2*gpu.Migrated < gpu.Rows-gpu.Kernels {
			continue // most of what moves is copied
		}
		moved = distribution.AddTimes(moved, gpu.sum(func(r Running) bool { return r.Has(profile.ClassMemory) && r.Has(profile.ClassCompute) }))
		for k := range gpu.Copies {
			if c := &gpu.Copies[k]; strings.Contains(c.Name, "Unified ") {
				pages.Join(&c.Copied)
			}
		}
	}
	if rows == 0 && judged.Reason == "" {
		judged.Reason = "no pages of unified memory moved"
	}
	share := t.part(moved)
	if judged.State() != finding.LookedAt || share < muchMigrated {
		return nil, judged
	}
	text := fmt.Sprintf("for %.0f %% of the time, pages of unified memory move while a kernel runs, whose threads wait for those that they touch: %s", 100*share, words.Counted(int(pages.N), "migration"))
	if pages.Bytes > 0 {
		text += ", " + words.Size(pages.Bytes) + " in all"
	}
	f := shareFinding("migrations", "page migrations", share, text, finding.Sentence("pages that are prefetched (cudaMemPrefetchAsync), or copied, move before the kernel begins"))
	f.Evidence = append(f.Evidence, g.largestCopies()...)
	return []finding.Finding{f}, judged
}

// A Piece is what a device did between two of [Options.Cuts]. What runs across a cut
// counts where it began to run alone.
type Piece struct {
	Activity // without Idle, and with the times of Waits only
}

// A CategoryTime is what one column of where GPU time went holds, in ns.
type CategoryTime struct {
	Name string // as people read it: "compute", "idle: host work"
	Time int64
}

// Times are where the time of the piece went: busy and idle, then each category. The
// categories add up to busy and idle.
func (p *Piece) Times() []CategoryTime {
	list := []CategoryTime{{metric.Busy.Name, p.Busy()}, {metric.Idle.Name, 0}}
	for i, a := range timeColumns() {
		amount := CategoryTime{a.title, a.of(&p.Activity)}
		if i >= numWork {
			list[1].Time = distribution.AddTimes(list[1].Time, amount.Time)
		}
		list = append(list, amount)
	}
	return list
}

// Holds reports whether a call of a name holds its thread up until the device is done.
func Holds(call string) bool {
	reason := reasonOfCall(call)
	return reason == AfterSync || reason == BlockingCopy
}

// A pieceSweep divides what a sweep counts among the pieces.
type pieceSweep struct {
	cuts []trace.Time // of pieces that have not begun
	gpu  *GPU
	now  int
}

// at returns the piece of an instant, nil without any. Instants come in order.
func (s *pieceSweep) at(t trace.Time) *Piece {
	if s.gpu.Pieces == nil {
		return nil
	}
	for len(s.cuts) > 0 && s.cuts[0] <= t {
		s.cuts = s.cuts[1:]
		s.now++
	}
	return &s.gpu.Pieces[s.now]
}

// runs counts time from an instant in which exactly these classes run.
func (s *pieceSweep) runs(from trace.Time, running Running, length int64) {
	if p := s.at(from); p != nil {
		p.Running[running] = distribution.AddTimes(p.Running[running], length)
	}
}

// waits counts by how much a gap made idle time longer, by reason.
func (s *pieceSweep) waits(from trace.Time, before, after *[NumReasons]int64) {
	p := s.at(from)
	if p == nil {
		return
	}
	for reason, t := range after {
		p.Waits.Time[reason] = distribution.AddTimes(p.Waits.Time[reason], t-before[reason])
	}
}
