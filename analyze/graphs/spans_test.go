package graphs

import (
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// The spans around each kernel are exactly its module and its operator. Spans of one
// stream nest, even if a kernel starts before the previous one ends.
func TestSpansAroundKernels(t *testing.T) {
	captures, replays := newPlant(true), newPlant(false)
	model := layers(4, 8)
	for i := range model {
		model[i].side = i%5 == 4
	}
	captures.capture(model, 8)
	replays.replay(model, 8)
	replays.replay(model, 8)
	rows := replays.rows.KernelRows
	for i := range rows {
		rows[i].At = int32(i)
		if i%3 == 0 && rows[i].Stream == 7 {
			rows[i].End += 3 // overlaps the next one
		}
	}
	g := Collect(sets(captures, replays))
	spans := g.Spans(0)
	streamOf := map[int32]uint32{}
	for i := range rows {
		streamOf[rows[i].At] = rows[i].Stream
	}
	around := func(stream uint32, at trace.Time) (names []string) {
		for _, s := range spans {
			if streamOf[s.First] == stream && s.From <= at && at < s.To {
				names = append(names, g.name(s.Name))
			}
		}
		return names
	}
	for i := range rows {
		k := &rows[i]
		m := model[i%len(model)]
		if got := around(k.Stream, k.Start); !slices.Equal(got, []string{m.module, m.operator}) {
			t.Errorf("kernel %d, %s: in %v, want %s, %s", i, m.kernel, got, m.module, m.operator)
		}
	}
	for i, a := range spans {
		if a.To < a.From {
			t.Errorf("%v ends before it begins", a)
		}
		for _, b := range spans[i+1:] {
			if streamOf[a.First] == streamOf[b.First] && b.From < a.To && b.To > a.To && b.From > a.From {
				t.Errorf("%v and %v overlap", a, b)
			}
		}
	}
	if none := Collect(sets(captures, newPlant(false))); none != nil && len(none.Spans(0)) > 0 {
		t.Error("spans without a replay")
	}
}
