package hang

import (
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile/recorder"
)

// ncclDumps returns what logs of NCCL say about each rank, and sets which collectives may not have ended:
// a log shows what was entered, never what ended. Collectives that all ranks of a communicator entered
// alike count as ended; those beyond the last one of the rank with the fewest count as in flight.
func ncclDumps(set *recorder.InFlight) []*recorder.FlightDump {
	list := inOrder(last(set.Dumps, recorder.NCCL))
	type member struct {
		d *recorder.FlightDump
		g int32
	}
	var of order.Groups[string, []member]
	for _, d := range list {
		for i := range d.Groups {
			order.Add(&of, d.Groups[i].Name, member{d, int32(i)})
		}
	}
	for _, members := range of.List {
		from := int64(1) << 62 // the first that may not have ended
		ended := false
		tails := make([][]*recorder.Op, len(members))
		for k, m := range members {
			g := &m.d.Groups[m.g]
			ended = ended || g.Ended
			from = min(from, max(0, g.Enqueued)+1)
			for i := range m.d.Ops {
				if op := &m.d.Ops[i]; op.Group == m.g {
					tails[k] = append(tails[k], op)
				}
			}
		}
		if at := mismatch(tails); at > 0 {
			from = min(from, at)
		}
		for _, tail := range tails {
			for _, op := range tail {
				if op.State = recorder.Completed; op.Seq >= from && !ended {
					op.State = recorder.Scheduled
				}
			}
		}
	}
	return list
}

// mismatch returns the number of the first collective that ranks did not all enter alike; 0 if there is none. If
// the following ones match once a line is left out, a line was lost, and nothing is certain: then it is 0, too.
func mismatch(tails [][]*recorder.Op) int64 {
	for _, tail := range tails[1:] {
		a, b := common(tails[0], tail)
		for i := range a {
			if sameCall(a[i], b[i]) {
				continue
			}
			if shifted(a[i+1:], b[i:]) || shifted(b[i+1:], a[i:]) {
				return 0
			}
			return a[i].Seq
		}
	}
	return 0
}

// common returns the parts of two lists that have the same numbers.
func common(a, b []*recorder.Op) (x, y []*recorder.Op) {
	if len(a) == 0 || len(b) == 0 {
		return nil, nil
	}
	from := max(a[0].Seq, b[0].Seq)
	cut := func(of []*recorder.Op) []*recorder.Op {
		i := slices.IndexFunc(of, func(op *recorder.Op) bool { return op.Seq >= from })
		if i < 0 {
			return nil
		}
		return of[i:]
	}
	x, y = cut(a), cut(b)
	n := min(len(x), len(y))
	return x[:n], y[:n]
}

func sameCall(a, b *recorder.Op) bool {
	return a.Name == b.Name && a.In.Text == b.In.Text && a.InT == b.InT
}

// shifted reports whether the first calls of two lists are the same, in all that both have, and for at least three.
func shifted(a, b []*recorder.Op) bool {
	const enough = 3
	n := min(len(a), len(b))
	for i := range n {
		if !sameCall(a[i], b[i]) {
			return false
		}
	}
	return n >= enough
}
