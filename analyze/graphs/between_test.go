package graphs

import "testing"

// Between two kernels of a replay, both planted neighbors are known. Between replays,
// and on another device, there are none. Without a capture, only the kernels are known.
func TestNeighborsOfGaps(t *testing.T) {
	model := layers(3, 8)
	for _, captured := range []bool{true, false} {
		captures, replays := newPlant(false), newPlant(false)
		if captured {
			captures.capture(model, 8)
		}
		replays.replay(model, 8)
		replays.replay(model, 8)
		set := sets(captures, replays)
		g := Read(set)
		rows, of := replays.rows.KernelRows, g.Neighbors()
		name := func(i int) string {
			if m := model[i%len(model)]; captured {
				return m.operator + " in " + m.module
			}
			return model[i%len(model)].kernel
		}
		for i := 1; i < len(rows); i++ {
			from, to := rows[i-1].End, rows[i].Start
			before, after := of.Around("rank 0", 0, from, to)
			if i == len(model) {
				if before+after != "" {
					t.Errorf("between replays ran %s, %s", before, after)
				}
				continue
			}
			if before != name(i-1) || after != name(i) {
				t.Errorf("captured %v, gap %d: between %s and %s, want %s and %s", captured, i, before, after, name(i-1), name(i))
			}
		}
		if before, after := of.Around("rank 0", 1, rows[0].End, rows[1].Start); before+after != "" {
			t.Errorf("on another device ran %s, %s", before, after)
		}
	}
}
