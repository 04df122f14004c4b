package finding

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// An Object is a finding in JSON. Fields are only ever added; docs/METRICS.md defines
// them. Unknown is null, points in time are Unix ns.
type Object struct {
	Kind     table.JSONText   `json:"kind"`
	Scope    table.JSONText   `json:"scope"`
	Role     table.JSONText   `json:"role"`
	Host     table.JSONText   `json:"host"`
	Rank     table.JSONText   `json:"rank"`
	Since    *int64           `json:"since_unix_ns"`
	Weight   float64          `json:"weight"`
	Text     table.JSONText   `json:"text"`
	Evidence []table.JSONText `json:"evidence"`
	Command  table.JSONText   `json:"command"`
	Args     []table.JSONText `json:"args"`
}

// Object returns what JSON has of f. The arguments again select and read the same input
// once more: "--from", "+10s", "dumps/".
func (f *Finding) Object(again []string) Object {
	role, host, rank := f.At.Parts()
	v := Object{
		Kind: table.JSONText(f.Kind), Scope: table.JSONText(f.At.Scope.String()),
		Role: table.JSONText(role), Host: table.JSONText(host), Rank: table.JSONText(rank),
		Weight: math.Round(f.Weight*1e6) / 1e6, Text: table.JSONText(f.Text), Evidence: table.JSONTexts(f.Evidence),
		Command: table.JSONText(f.Command(again)), Args: table.JSONTexts(f.Show),
	}
	if f.Since != 0 {
		v.Since = new(int64(f.Since))
	}
	return v
}

// Command is the command line that shows more of f, ready to paste into a shell. The
// arguments again are those of [Finding.Object].
func (f *Finding) Command(again []string) string {
	return words.QuoteShell(slices.Concat([]string{"sgtrace", "report"}, f.Show, again))
}
