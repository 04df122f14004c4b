package fleet

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/page"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/trace"
)

// runOf is a run on a day of March that lost lost of 1000 s to a kind of finding.
func runOf(day int, kind finding.Kind, lost float64) *Run {
	from := trace.Time(time.Date(2026, 3, day, 9, 0, 0, 0, time.UTC).UnixNano())
	return &Run{From: from, To: from + 60e9, GPUTime: 1000e9, Losses: []Loss{{Kind: kind, Findings: 1, GPU: lost * 1e9}}}
}

// The page shows the losses, and its chart those of each day.
func TestPageOfLosses(t *testing.T) {
	f := New([]*Run{runOf(1, finding.Straggler, 20), runOf(1, finding.GPU, 5), runOf(3, finding.Straggler, 40)})
	r := f.Look()
	p := f.Page(&r, page.Source{Inputs: []string{"weeks"}}, page.Provenance{})
	if tile := p.Tiles[2]; tile.Name != "Lost to straggler" || tile.Value+" "+tile.Unit != "60 GPU-seconds" || tile.Detail != "2.0 % of what was recorded" {
		t.Errorf("the tile of what was lost is %+v", tile)
	}
	i := slices.IndexFunc(p.Sections, func(s page.Section) bool { return s.ID == "losses" })
	panel := p.Sections[i].Figures[0].Body.(*chart.Panels).Panels[0]
	want := map[string][]float64{"straggler": {20, math.NaN(), 40}, "gpu": {5, math.NaN(), 0}}
	for _, c := range panel.Curves {
		for k, v := range want[c.Name] {
			if c.Values[k] != v && !(math.IsNaN(v) && math.IsNaN(c.Values[k])) {
				t.Errorf("%s lost %v, want %v", c.Name, c.Values, want[c.Name])
			}
		}
	}
	if len(panel.Curves) != len(want) || panel.Title != "GPU-seconds lost" {
		t.Errorf("the chart is %+v", panel)
	}
	var b bytes.Buffer
	if err := page.Write(&b, p); err != nil || !strings.Contains(b.String(), `<section id="offenders">`) {
		t.Errorf("the page is %d bytes: %v", b.Len(), err)
	}
}

// A single run at an unknown time makes a page without charts.
func TestOneRun(t *testing.T) {
	f := New([]*Run{{GPUTime: 1}})
	r := f.Look()
	var b bytes.Buffer
	if err := page.Write(&b, f.Page(&r, page.Source{}, page.Provenance{})); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.Contains(text, "not enough data") || strings.Contains(text, `id="losses-by-day"`) {
		t.Error("the page of one run says too much, or too little")
	}
}
