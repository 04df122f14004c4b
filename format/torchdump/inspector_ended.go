package torchdump

import (
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// ended returns what each process says of the collectives that ended last: the last one of each communicator.
func (r *inspectorReader) ended(file string, profiles []*profile.Profile) (list []*recorder.FlightDump) {
	of := map[process]*recorder.FlightDump{}
	for _, p := range profiles {
		if len(p.Meta.Hints) == 0 {
			continue
		}
		d := &recorder.FlightDump{File: file, By: recorder.Inspector, Rank: p.Meta.Hints[0].Rank, Of: trace.NoRank, Host: p.Meta.Host, PID: p.Meta.PID}
		list = append(list, d)
		of[process{d.Host, d.PID, -1}] = d
		of[process{d.Host, d.PID, d.Rank}] = d
	}
	for _, m := range r.order {
		d := of[process{m.host, m.pid, m.rank}]
		if d == nil {
			d = of[process{m.host, m.pid, -1}]
		}
		if d == nil || len(m.ops) == 0 {
			continue
		}
		g := recorder.NewGroup(m.id, m.name)
		g.Size, g.Member = m.size, m.rank
		x := &m.ops[len(m.ops)-1]
		d.Ops = append(d.Ops, recorder.Op{Group: int32(len(d.Groups)), Seq: x.seq, Record: recorder.Unknown, Name: x.name, Src: -1, Dst: -1, State: recorder.Completed, Stack: recorder.Unknown})
		d.Groups = append(d.Groups, g)
		d.Time = max(d.Time, x.end)
	}
	return list
}
