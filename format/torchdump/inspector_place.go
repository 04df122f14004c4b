package torchdump

import (
	"math"
	"time"

	"github.com/sgtrace/sgtrace/trace"
)

// together is how far apart two records are stamped, at most, that the Inspector wrote in one go: it looks at
// the clock before it prints each, and printing one takes microseconds.
const together = 200 * time.Microsecond

// place finds out when the collectives of a communicator were of which that is not told. What was written
// in one go ended since what was written before, and one after another; it is put evenly in between. If all
// was written in one go, nothing is known but the order: it is put right before that.
func (r *inspectorReader) place(m *member) {
	before := trace.Time(0) // when the batch before was written; 0 is none
	for from := 0; from < len(m.ops); {
		if m.ops[from].timed {
			before = m.ops[from].end
			from++
			continue
		}
		to := from + 1
		for to < len(m.ops) && !m.ops[to].timed && m.ops[to].end-m.ops[to-1].end <= trace.Time(together) {
			to++
		}
		written := m.ops[from].end
		m.ops[from:to].spread(before, written)
		switch {
		case from == 0 && to == len(m.ops) && to > 1:
			m.blur = math.MaxInt64
			r.undated += int64(to)
		case before != 0:
			m.blur = max(m.blur, int64(written-before))
		}
		before, from = written, to
	}
}

// spread puts collectives evenly into a time, one after another; an unknown beginning of it, 0, or one in which
// they have no room, leaves no time between them.
func (list ops) spread(from, to trace.Time) {
	took := trace.Time(0)
	for i := range list {
		took += list[i].took()
	}
	gap := trace.Time(0)
	if from != 0 && to-from > took {
		gap = (to - from - took) / trace.Time(len(list))
	}
	for i := len(list) - 1; i >= 0; i-- {
		list[i].end = to
		to -= list[i].took() + gap
	}
}

func (x *op) took() trace.Time { return trace.Time(x.micros * 1000) }
