package nsysexport

import (
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Inventory adds an export, of size bytes, to an inventory, and the processes that it
// names with what they are. Of its events only messages of the profiler are read.
func Inventory(v *inventory.Inventory, src *rows.Source, size int64, processes []*profile.Profile, are []profile.Identity) {
	m := &src.Meta
	v.Exports = append(v.Exports, inventory.Export{
		File: src.Name, Size: size, Product: m.Product, Schema: m.Schema, Host: m.Host, Absolute: m.Absolute,
		Start: m.SessionStart, Duration: m.Duration, GraphMode: m.GraphMode, Driver: m.Driver,
		PartialTables: m.PartialTables, PartialTimes: m.PartialTimes,
	})
	listProcesses(v, src, processes, are)
	for _, g := range m.GPUs {
		v.AddDevice(src.Name, g.Name, g.ID)
	}
	for _, t := range src.EventTables() {
		v.Tables = append(v.Tables, inventory.Table{File: src.Name, Name: t.Name, Rows: t.Rows, Read: true,
			First: t.First, Last: t.Last, Timed: t.Timed && m.Absolute})
	}
	for _, t := range src.Unread {
		v.Tables = append(v.Tables, inventory.Table{File: src.Name, Name: t.Name, Rows: t.Rows})
	}
	for x := range src.Messages {
		v.Messages = append(v.Messages, inventory.Message{File: src.Name, Time: x.Time, Timed: m.Absolute,
			Severity: severityWords[x.Severity], PID: int64(x.PID), Text: x.Text})
	}
}

// severityWords are nsys's names of severities, by number.
var severityWords = map[uint8]string{2: "warning", 3: "error"}

// listProcesses adds the processes of which a pid or a rank is known.
func listProcesses(v *inventory.Inventory, src *rows.Source, processes []*profile.Profile, are []profile.Identity) {
	gpus := map[int64][]int64{} // by pid
	for _, d := range src.Meta.Devices {
		gpus[int64(d.PID)] = append(gpus[int64(d.PID)], d.GPU)
	}
	events := src.Active()
	for i, p := range processes {
		name, _, _ := p.ProcessOf("")
		row := inventory.Process{File: src.Name, Name: name, Is: are[i], N: 1, PID: p.Meta.PID,
			World: p.Meta.WorldSize, GPUs: gpus[p.Meta.PID], Events: events[int32(p.Meta.PID)], Steps: -1, Collectives: -1}
		switch {
		case row.Events == 0 && len(row.GPUs) == 0 && row.Is.RankFrom == rows.FromEnvironment:
			row.Is.Rank, row.Is.RankFrom = trace.NoRank, "" // a process that nsys did not start
		case row.World < 0 && len(p.Meta.Hints) > 0:
			row.World = p.Meta.Hints[0].Size
		}
		if row.PID > 0 || row.Is.Rank != trace.NoRank {
			v.AddProcess(row)
		}
	}
}
