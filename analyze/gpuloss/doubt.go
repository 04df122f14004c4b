package gpuloss

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/trace"
)

// losses are messages about a recording that may lack work of devices, or does not say whose work it is.
var losses = []*trace.Message{trace.NsysError, trace.NsysTableDamaged, trace.NsysNoDevice, trace.TraceTruncated, trace.RocmTableDamaged, trace.RocmLost}

// DoubtDamaged lowers the confidence of a finding about GPU time if the profiler or a file lost rows. Damage to the
// recording of one run says nothing about another run.
func DoubtDamaged(f *finding.Finding, g *gpu.GPUs, problems []trace.Diag) {
	files, ofRun := runFiles(f, g)
	i := slices.IndexFunc(problems, func(d trace.Diag) bool {
		return slices.Contains(losses, d.Message) && (!ofRun || slices.ContainsFunc(files, func(file string) bool { return isIn(d.Pos.File, file) }))
	})
	if i < 0 {
		return
	}
	if f.Confidence == finding.Certain {
		f.Confidence = finding.Likely
	}
	why := "events may be missing, and missing work looks like idle time"
	if problems[i].Message == trace.NsysNoDevice {
		why = "the GPU of some work is not known, and GPUs look idle while it runs"
	}
	f.Evidence = slices.Insert(f.Evidence, min(1, len(f.Evidence)), finding.Sentence("%s [%s]", why, problems[i].Code)) // at a place that the summary shows
}

// runFiles returns the inputs of the run that a finding is about, if it is about one of several, see [gpu.GPUs.EachRun],
// or about a rank of one.
func runFiles(f *finding.Finding, g *gpu.GPUs) (files []string, ofRun bool) {
	if g == nil {
		return nil, false
	}
	of := func(d gpu.GPU) bool { return d.Rank == f.Rank }
	for _, part := range g.Parts {
		whole := part.Runs[0].From == f.Since && part.Runs[len(part.Runs)-1].To == f.Until
		if whole || f.Rank != "" && slices.ContainsFunc(part.GPUs, of) {
			return part.Files, true
		}
	}
	return nil, false
}

// isIn reports whether the place of a message is a file, or a table in it.
func isIn(place, file string) bool {
	rest, in := strings.CutPrefix(place, file)
	return in && (rest == "" || rest[0] == ':')
}
