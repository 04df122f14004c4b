package gpu

import (
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
)

// A StepShare is what a device did for one kind of steps.
type StepShare struct {
	gpu  *GPU
	Kind profile.StepKind
	Activity
}

// StepShares returns what devices did by kind of step, prefill first; nil where no kind is
// known.
func (g *GPUs) StepShares() []StepShare {
	var out []StepShare
	known := false
	for _, kind := range [...]profile.StepKind{profile.StepPrefill, profile.StepDecode, profile.StepOther} {
		for i := range g.GPUs {
			if a := &g.GPUs[i].BySteps[kind]; a.Total() > 0 {
				out = append(out, StepShare{&g.GPUs[i], kind, *a})
				known = known || kind != profile.StepOther
			}
		}
	}
	if !known {
		return nil
	}
	return out
}

// StepShareReport makes a table of what devices did by kind of step: prefill and decode are
// two regimes, of which the shares of a whole capture are a mixture.
func (g *GPUs) StepShareReport() *table.Table {
	type row = StepShare
	fields := []table.Field[row]{
		table.TextColumn("kind", "of the step that launched what ran last, or what ended a gap: prefill (EXTEND), decode, or other: mixtures, and outside of steps", func(r *row) string { return walk.StepKinds[r.Kind] }),
		table.TextColumn("rank", "rank, or process that is none; with the device where ranks have several", func(r *row) string { return g.gpuLabel(r.gpu) }),
		table.NsColumn("time", "busy and idle time that belongs to such steps", (*row).Total),
		{Column: table.Column{Name: "of length", Unit: table.Share, Doc: "part of the length of the device"}, Cell: func(r *row) table.Cell { return table.ShareCell(r.Total(), r.gpu.Length()) }},
	}
	fields = append(fields, partsOf((*row).did, (*row).Total, "time", computeTime, commTime, exposedComm, exposedCopy, idleTime)...)
	for cause, name := range causeNames {
		fields = append(fields, part(name, causeDocs[cause], "time", (*row).Total, func(r *row) int64 { return r.Idle.Time[cause] })...)
	}
	return table.New("sgtrace.report.gpu.steps/v1", "GPUs by kind of step and rank", g.StepShares(), fields).Stay("idle", "time").Leave("exposed copy")
}
