package rows

import (
	"math"
	"sync"

	"github.com/sgtrace/sgtrace/nsysexport/storage"
	"github.com/sgtrace/sgtrace/trace"
)

// A Window is a source of what is in a window of time, or of all. Events that do not overlap it may be
// missing where that saves reading them; but no call that launched work that does.
type Window struct {
	*Source
	from, to trace.Time
	// launched finds the correlations of the work: those from least to most.
	launched func() (least, most int64)
}

// Within returns the rows of [from, to]; 0 is open.
func (s *Source) Within(from, to trace.Time) *Window {
	w := &Window{Source: s, from: from, to: to}
	w.launched = sync.OnceValues(w.findLaunched)
	return w
}

// bounded returns a spec of a table with the rows that matter.
func (w *Window) bounded(spec *tableSpec) *tableSpec {
	if w.from == 0 && w.to == 0 {
		return spec
	}
	bounded := *spec
	bounded.within = &storage.Window{From: math.MinInt64, To: math.MaxInt64, Number: storage.NoColumn}
	if w.from != 0 {
		bounded.within.From = int64(w.from) - w.base
	}
	if w.to != 0 {
		bounded.within.To = int64(w.to) - w.base
	}
	return &bounded
}

// calling returns a spec of a table of calls with the rows that matter.
func (w *Window) calling(spec *tableSpec) *tableSpec {
	bounded := w.bounded(spec)
	if bounded.within != nil {
		bounded.within.Number = callCorrelation
		bounded.within.Least, bounded.within.Most = w.launched()
	}
	return bounded
}

func (w *Window) findLaunched() (least, most int64) {
	least, most = math.MaxInt64, math.MinInt64
	add := func(at *Place) bool {
		if c := int64(at.Correlation); c != 0 {
			least, most = min(least, c), max(most, c)
		}
		return true
	}
	w.Kernels(func(k *Kernel) bool { return add(&k.Place) })
	w.GraphRuns(func(g *GraphRun) bool { return add(&g.Place) })
	w.Memcpys(func(m *Memcpy) bool { return add(&m.Place) })
	w.Memsets(func(m *Memset) bool { return add(&m.Place) })
	return least, most
}

// overlapping returns the window of a spec by the columns that are selected; nil where that lacks
// one.
func (s *selection) overlapping(spec *tableSpec) *storage.Window {
	const start, end = 0, 1
	if !s.has(start) || !s.has(end) || spec.columns[end].name != "end" {
		return nil
	}
	w := *spec.within
	w.Start, w.End = s.at[start], s.at[end]
	if w.Number != storage.NoColumn {
		if !s.has(w.Number) {
			return nil
		}
		w.Number = s.at[w.Number]
	}
	return &w
}
