package finders_test

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
)

// A mute covers its kind at its place and within it, and nothing else. Muted findings are kept separately.
func TestMute(t *testing.T) {
	decode := place.Location{Scope: place.WholeRole, Role: request.Decode}
	all := []finding.Finding{{Kind: finding.Straggler, At: decode, Text: "a"}, {Kind: finding.Straggler, Text: "b"}, {Kind: finding.Load, At: decode, Text: "c"}}
	for file, want := range map[string]string{
		"":                               "abc",
		"straggler":                      "c",
		"# known\n\nstraggler@decode #x": "bc",
		"straggler@dec":                  "abc",
		"load\nstraggler @ decode":       "b",
	} {
		list, err := finders.ReadMutes(strings.NewReader(file), "known")
		if err != nil {
			t.Fatal(err)
		}
		r := &finders.Result{Findings: append([]finding.Finding(nil), all...)}
		r.Mute(list)
		got := ""
		for _, f := range r.Findings {
			got += f.Text
		}
		if got != want || len(r.Findings)+len(r.Muted) != len(all) {
			t.Errorf("%q leaves %q and mutes %d, want %q", file, got, len(r.Muted), want)
		}
	}
	for file, want := range map[string]string{"load\nstragler": "known:2: ", "load@": "want a place"} {
		if _, err := finders.ReadMutes(strings.NewReader(file), "known"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", file, err, want)
		}
	}
}
