package hang

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// A rank whose collective ended waits in the group's next one for the ranks whose collective
// did not end. Its earlier send on another stream waits as well. Neither is a cause of its own.
func TestLaterCollectivesWaitForEarlierOnes(t *testing.T) {
	set := recorder.NewInFlight(trace.NewSymbols())
	collective, send := set.Syms.Intern("all_to_all"), set.Syms.Intern("send")
	group := func(name string, ranks ...int32) recorder.Group {
		g := recorder.NewGroup(name, name)
		g.Ranks = ranks
		return g
	}
	op := func(of int32, seq int64, state recorder.OpState) recorder.Op {
		return recorder.Op{Group: of, Seq: seq, P2P: recorder.Unknown, Name: collective, Src: recorder.Unknown, Dst: recorder.Unknown, State: state, Created: trace.Time(seq), Stack: recorder.Unknown}
	}
	toTwo := recorder.Op{Group: 1, Seq: recorder.Unknown, P2P: 1, Name: send, Src: 0, Dst: 1, Created: 30, Stack: recorder.Unknown}
	for rank, ops := range [][]recorder.Op{
		{op(0, 10, recorder.Started)},
		{op(0, 10, recorder.Completed), op(0, 11, recorder.Scheduled), toTwo},
		{toTwo},
	} {
		for i := range ops {
			ops[i].Record = int64(i)
		}
		groups := []recorder.Group{group("experts", 0, 1), group("pipeline", 1, 2)}
		if rank == 2 {
			ops[0].Group, groups = 0, groups[1:]
		}
		set.Dumps = append(set.Dumps, &recorder.FlightDump{File: string(rune('a' + rank)), Rank: int32(rank), Groups: groups, Ops: ops, Time: 40})
	}
	found, _ := Find(set).Findings()
	if len(found) != 1 || !strings.Contains(found[0].Text, "ended on rank 1 and not on rank 0") || found[0].Cost != 1 {
		t.Errorf("%+v", found)
	}
}
