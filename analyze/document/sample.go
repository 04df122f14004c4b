package document

import (
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// ofRequests are the tables that list requests, or have percentiles or counts of them.
var ofRequests = []string{
	"latency", "summary.latency", "stages", "requests", "tokens", "ranks", "ranks.share", "changes", "timeline", "slo",
	"tail.e2e", "tail.ttft", "tail.itl", "common", "transfers", "diff",
}

// SampleNotes say of which requests inputs have records, where these are not all.
func SampleNotes(diags *trace.Diags) (notes []string) {
	if diags == nil {
		return nil
	}
	for _, m := range []*trace.Message{trace.RecordsSlowOnly, trace.RecordsFailedOnly} {
		of := order.Only(diags.All(), func(d trace.Diag) bool { return d.Message == m })
		if len(of) == 0 {
			continue
		}
		note := fmt.Sprintf("a biased sample: %s: %s", of[0].Pos, of[0].Msg)
		if n := len(of) - 1; n > 0 {
			note += fmt.Sprintf("; and so in %d more", n)
		}
		notes = append(notes, note+" ["+of[0].Code+"]")
	}
	return notes
}

// NoteSample says below each table of requests if they are a biased sample.
func (d *Document) NoteSample(diags *trace.Diags) {
	notes := SampleNotes(diags)
	for _, t := range d.Tables {
		if slices.Contains(ofRequests, t.Name()) {
			for _, note := range notes {
				t.Note("%s", note)
			}
		}
	}
}
