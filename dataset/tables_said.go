package dataset

import (
	"cmp"
	"math"

	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// An aboutRow says what a value or an event is about.
type aboutRow struct {
	Server string `parquet:"server,dict" redact:"host" doc:"server: its pod, its log, or its address; empty is unknown"`
	Host   string `parquet:"host,dict" redact:"host" doc:"empty is unknown"`
	Role   string `parquet:"role,dict" redact:"own" doc:"prefill, decode, unified, router; empty is unknown"`
	Rank   string `parquet:"rank,dict" redact:"own" doc:"rank: DP0 TP0; empty is none"`
	GPU    int32  `parquet:"gpu,dict" doc:"GPU of the host; -1 is none"`
	UUID   string `parquet:"uuid,dict" redact:"own" doc:"of the GPU; empty is unknown"`
}

// A valueRow is a value in logs or metrics.
type valueRow struct {
	Time   int64   `parquet:"time,delta" unit:"ns" doc:"Unix time"`
	Within int64   `parquet:"within,dict" unit:"ns" doc:"how much later it may have been: a stamp of whole seconds is the beginning of its second"`
	Metric string  `parquet:"metric,dict" redact:"structural" doc:"what was measured, as reports call it, or as its producer does"`
	Value  float64 `parquet:"value" doc:"in the unit of the metric"`
	Unit   string  `parquet:"unit,dict" redact:"own" doc:"empty is a number of things"`
	Kind   string  `parquet:"kind,dict" redact:"own" doc:"gauge, counter (grows), amount (since the value before), bucket (a counter of what is at most le), mean"`
	Label  string  `parquet:"label,dict" doc:"what else its producer tells series apart by: stage=prefill_forward"`
	Le     float64 `parquet:"le,optional" doc:"of a bucket: the most that it counts"`
	aboutRow
}

// A happenedRow is an event reported by logs, kernels, or an orchestrator.
type happenedRow struct {
	Time   int64  `parquet:"time,optional" unit:"ns" doc:"Unix time"`
	Within int64  `parquet:"within,dict" unit:"ns" doc:"how much later it may have been"`
	Kind   string `parquet:"kind,dict" redact:"own" doc:"as logs.events of reports has it: retraction, exception, timeout, hardware, ..."`
	Text   string `parquet:"text,dict" doc:"what happened, without prompts and keys"`
	Stack  string `parquet:"stack,dict" doc:"functions, innermost first, a line each"`
	N      int64  `parquet:"n" doc:"requests or repetitions that it is about"`
	Line   int64  `parquet:"line" doc:"line in the original; 0 if it has no lines"`
	aboutRow
}

// An enteredRow is a collective, a send, or a receive that a process entered.
type enteredRow struct {
	By      string `parquet:"by,dict" redact:"own" doc:"who says it: PyTorch flight recorder, PyTorch watchdog, NCCL log, NCCL Inspector"`
	Rank    int32  `parquet:"rank" doc:"rank in the job; -1 is unknown"`
	Host    string `parquet:"host,dict" redact:"host" doc:"empty is unknown"`
	PID     int64  `parquet:"pid" doc:"0 is unknown"`
	Group   string `parquet:"process_group,dict" redact:"structural" doc:"the process group, by its description, else its name"`
	Members int32  `parquet:"members" doc:"ranks of the group; -1 is unknown"`
	Seq     int64  `parquet:"seq" doc:"which collective of the group it is; -1 is unknown"`
	P2P     int64  `parquet:"p2p" doc:"which send or receive of the group it is; -1 is unknown"`
	Op      string `parquet:"op,dict" redact:"own" doc:"all_reduce, send, ..."`
	Src     int32  `parquet:"src" doc:"rank in the group that sends; -1 is none"`
	Dst     int32  `parquet:"dst" doc:"rank in the group that receives; -1 is none"`
	Sizes   string `parquet:"sizes,dict" redact:"own" doc:"sizes of what goes in"`
	Type    string `parquet:"type,dict" redact:"own" doc:"type of its elements"`
	State   string `parquet:"state,dict" redact:"own" doc:"scheduled, started, completed, as far as the process knows; NCCL's log tells no more than scheduled"`
	Pending bool   `parquet:"pending" doc:"it has not ended, as far as the process knows"`
	Time    int64  `parquet:"time,optional" unit:"ns" doc:"Unix time at which the process entered it"`
}

// writeSeries writes the values and events of logs and metrics.
func (w *writer) writeSeries() {
	set := w.content.Series
	if set == nil {
		return
	}
	values, happened := lazy[valueRow]{of: w, name: "values-0"}, lazy[happenedRow]{of: w, name: "happened-0"}
	for i := range set.List {
		s := &set.List[i]
		of := set.Metric(s.Metric)
		row := valueRow{Metric: of.Name, Unit: of.Unit, Kind: of.Kind.String(), Label: w.name(s.Label), aboutRow: about(set, s.Place)}
		if of.Kind == series.Bucket && !math.IsInf(s.Most, 0) {
			row.Le = s.Most
		}
		for x := range set.Each(i) {
			row.Time, row.Within, row.Value = int64(x.Time), x.Within(), x.Value
			values.write(row)
		}
	}
	for i := range set.Instants {
		x := &set.Instants[i]
		happened.write(happenedRow{Time: int64(x.Time), Within: 1000 * int64(x.Within), Kind: x.Kind.String(), Text: w.name(x.Text), Stack: w.name(x.Stack),
			N: int64(x.Count), Line: int64(x.Line), aboutRow: about(set, x.Place)})
	}
	values.close()
	happened.close()
}

// about returns the row for an index into Places.
func about(set *series.Set, place int32) aboutRow {
	p := &set.Places[place]
	server := &set.Servers[p.Server]
	return aboutRow{server.Called(), server.Host, server.Role, rankText(p.Rank), p.GPU, p.UUID}
}

// rankText returns a rank as text, "" for none.
func rankText(r trace.Rank) string {
	if r == trace.NoRank {
		return ""
	}
	return r.String()
}

// entered writes the collectives that processes have in flight, and earlier ones as far as they were recorded.
func (w *writer) entered() {
	if w.content.Flight == nil {
		return
	}
	l := lazy[enteredRow]{of: w, name: "entered-0"}
	for _, d := range w.content.Flight.Dumps {
		for i := range d.Ops {
			l.write(w.enteredRow(d, &d.Ops[i]))
		}
	}
	l.close()
}

func (w *writer) enteredRow(d *recorder.FlightDump, o *recorder.Op) enteredRow {
	g := &d.Groups[o.Group]
	row := enteredRow{By: d.By.String(), Rank: d.Rank, Host: d.Host, PID: d.PID, Group: g.Desc, Members: g.Size, Seq: o.Seq, P2P: o.P2P, Op: w.name(o.Name), Src: o.Src, Dst: o.Dst,
		Sizes: w.name(o.In.Text), Type: w.name(o.InT), State: o.State.String(), Pending: o.Pending(), Time: int64(max(0, o.Created))}
	row.Group = cmp.Or(row.Group, g.Name)
	if n := len(g.Ranks); n > 0 {
		row.Members = int32(n)
	}
	return row
}
