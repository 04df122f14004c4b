package overview

import (
	"github.com/sgtrace/sgtrace/analyze/finding"
)

// list is what was found, as people and programs see it.
func (o *Overview) list() *List {
	return &List{Result: &o.Result, Select: o.Select, Inputs: o.Inputs, All: o.AllFindings, Evidence: o.AllEvidence}
}

// Command is the command line that shows more of a finding of the overview, as one can
// paste it into a shell.
func (o *Overview) Command(f *finding.Finding) string { return o.list().Command(f) }
