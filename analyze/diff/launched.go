package diff

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// stepWork assigns work of devices to pieces of a capture: to the piece of the step that launched it, whenever it ran.
// A host that runs ahead of its device may end its last step while the first one runs. Work launched before the first
// step of the capture, or after the last, belongs to no step. It is nil if there are no steps, or no launches.
type stepWork struct {
	launches    []profilewalk.PerRank[profilewalk.Launches] // by stream
	host        *compare.Pieces
	first, last trace.Time   // bounds of the steps on the host
	begins      []trace.Time // by piece: the start of the first device work that it launched
	foreign     bool         // some work that no step launched runs before the first piece
	ahead       bool         // most host steps end before their work begins
	periods     []int64      // by step: its time on the device, ns; -1 if unknown
}

// A stepSpan is when the work of a step ran; from is 0 if none did.
type stepSpan struct{ from, to trace.Time }

// findWork finds when the work of steps ran. own has the bounds of the steps of the best kind.
func findWork(set *profile.Set, window *profilewalk.Options, steps []diffStep, own Side, host *compare.Pieces) *stepWork {
	w := &stepWork{launches: make([]profilewalk.PerRank[profilewalk.Launches], len(set.Streams)), host: host, first: own.First, last: own.Last}
	best := perSecond
	for i := range steps {
		best = max(best, levelOf(&steps[i].kind))
	}
	byRank := make([][]int32, len(set.Ranks)) // indexes of steps of the best kind, ordered by start
	for i := range steps {
		if levelOf(&steps[i].kind) == best {
			byRank[steps[i].rank] = append(byRank[steps[i].rank], int32(i))
		}
	}
	for _, of := range byRank {
		slices.SortFunc(of, func(a, b int32) int { return cmp.Compare(steps[a].start, steps[b].start) })
	}
	spans := make([]stepSpan, len(steps))
	begins := make([]trace.Time, host.Own())
	earliest := trace.Time(0)
	found := make([]func(), len(set.Streams)) // place the rows of each stream, one stream after the other
	profilewalk.EachStream(set, func(i int, s profile.Stream) {
		launches := &w.launches[i]
		for c := range s.Calls {
			if window.Keeps(&c.Event) {
				launches.At(c.Rank).Add(c)
			}
		}
		var rows []workRow
		add := func(e *profile.Event) {
			if window.Keeps(e) {
				rows = memory.Append(rows, workRow{e.Start, e.Start + trace.Time(e.Dur()), w.launched(i, e), e.Rank})
			}
		}
		for k := range s.Kernels {
			add(&k.Event)
		}
		for c := range s.Copies {
			add(&c.Event)
		}
		found[i] = func() {
			for _, r := range rows {
				earliest = order.Earlier(earliest, r.from)
				w.place(&r, steps, byRank[r.rank], spans, begins)
			}
			memory.Free(rows)
		}
	})
	for _, f := range found {
		f()
	}
	if !slices.ContainsFunc(begins, func(t trace.Time) bool { return t != 0 }) {
		return nil
	}
	w.settle(begins, earliest)
	w.measure(steps, byRank, spans)
	return w
}

// A workRow is a kernel or a copy, with the time of its launch; 0 if unknown.
type workRow struct {
	from, to, launch trace.Time
	rank             int32
}

// launched returns when the call that launched an event of stream i began; 0 if unknown.
func (w *stepWork) launched(i int, e *profile.Event) trace.Time {
	if e.Correlation == 0 {
		return 0
	}
	of := w.launches[i].Find(e.Rank)
	if of == nil {
		return 0
	}
	if l := of.Find(e.Correlation); l != nil {
		return l.Start
	}
	return 0
}

// place adds a row to its step and to its piece.
func (w *stepWork) place(r *workRow, steps []diffStep, of []int32, spans []stepSpan, begins []trace.Time) {
	if r.launch < w.first || r.launch > w.last {
		return
	}
	at, _ := slices.BinarySearchFunc(of, r.launch+1, func(step int32, t trace.Time) int { return cmp.Compare(steps[step].start, t) })
	if at == 0 {
		return
	}
	span := &spans[of[at-1]]
	span.from, span.to = order.Earlier(span.from, r.from), max(span.to, r.to)
	piece := w.host.At(r.launch) - w.host.First
	begins[piece] = order.Earlier(begins[piece], r.from)
}

// settle makes the starts of pieces on the device increase.
func (w *stepWork) settle(begins []trace.Time, earliest trace.Time) {
	for i := range begins {
		if begins[i] == 0 && i > 0 {
			begins[i] = w.host.Starts[i-1]
		}
		if i > 0 {
			begins[i] = max(begins[i], begins[i-1]+1)
		}
	}
	w.begins, w.foreign = begins, earliest < begins[0]
}

// measure finds how long steps take on the device: from the start of the first work that a step launched to that of the next step.
func (w *stepWork) measure(steps []diffStep, byRank [][]int32, spans []stepSpan) {
	w.periods = make([]int64, len(steps))
	for i := range w.periods {
		w.periods[i] = -1
	}
	behind, known := 0, 0
	for _, of := range byRank {
		for k, step := range of {
			span, s := spans[step], &steps[step]
			if span.from == 0 {
				continue
			}
			known++
			if span.from > s.start+trace.Time(s.dur) {
				behind++
			}
			to := span.to
			if k+1 < len(of) && spans[of[k+1]].from > span.from {
				to = spans[of[k+1]].from
			}
			w.periods[step] = distribution.Between(span.from, to)
		}
	}
	w.ahead = 2*behind > known
}

// pieceOf returns the piece that an event of stream i belongs to; ok is false if no step launched it.
func (w *stepWork) pieceOf(i int, e *profile.Event, pieces *compare.Pieces) (piece int, ok bool) {
	launch := w.launched(i, e)
	switch {
	case launch == 0 && e.Start < w.begins[0]:
		return 0, false
	case launch == 0:
		return w.device(pieces).At(e.Start), true
	case launch < w.first || launch > w.last:
		return 0, false
	}
	return pieces.At(launch), true
}

// device returns the pieces as seen on the device: each begins with the first work that it launched.
func (w *stepWork) device(pieces *compare.Pieces) *compare.Pieces {
	if pieces.Own() == 1 { // the capture is one observation
		return pieces
	}
	return &compare.Pieces{Starts: w.begins[1:], First: pieces.First, All: pieces.All}
}

// cuts returns the times at which device time is cut, and how many of the resulting parts come before the first piece.
func (w *stepWork) cuts(pieces *compare.Pieces) (cuts []trace.Time, before int) {
	if w == nil {
		return pieces.Cuts(), 0
	}
	cuts = w.device(pieces).Cuts()
	if w.foreign {
		return slices.Concat([]trace.Time{w.begins[0]}, cuts), 1
	}
	return cuts, 0
}
