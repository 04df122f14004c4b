package requests

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// For every request of the development data, each stage is on a row, the token gaps of
// the lead rank equal those in the metrics, and the holes add up to the unaccounted time.
func TestWaterfallIsComplete(t *testing.T) {
	for _, dump := range []string{"a_unified_tp2.jsonl", "b_pd_smg_tp2.jsonl.zst", "b2_pd_nosmg_tp2.jsonl.zst", "c_pp2_dp2.jsonl.zst", "e_legacy_v1_pd_minilb.jsonl.zst"} {
		t.Run(dump, func(t *testing.T) {
			s := testset.LoadDump(t, dump)
			stages := make([]int, len(s.Requests))
			for i := range s.Len() {
				if s.Kind(i) == request.Stage {
					stages[s.RequestOf(i)]++
				}
			}
			for r := range s.Requests {
				w := NewWaterfall(s, r)
				checkComplete(t, s, w, stages[r])
			}
		})
	}
}

func checkComplete(t *testing.T, s *request.Set, w *Waterfall, stages int) {
	t.Helper()
	req := w.Request
	n := 0
	for _, l := range w.Lanes {
		for _, row := range l.Rows {
			if l.Part != request.None {
				n += len(row.Spans)
			}
		}
	}
	if n != stages {
		t.Errorf("%s: %d stages are shown, want %d", s.Text(req.RID), n, stages)
	}
	holes := int64(0)
	for _, h := range w.Holes {
		holes += int64(h.To - h.From)
	}
	if holes != max(0, req.Metrics.Unaccounted) {
		t.Errorf("%s: holes of %d ns, want %d", s.Text(req.RID), holes, req.Metrics.Unaccounted)
	}
	lead := s.Lead(&s.Parts[s.Answering(req)])
	if lead == request.None || req.Metrics.ITL.N == 0 {
		return
	}
	itl, got := req.Metrics.ITL, measureTokens(s, lead).Gaps
	if got.N != itl.N || got.P50 != itl.P50 || got.P90 != itl.P90 || got.P99 != itl.P99 || got.Max != itl.Max {
		t.Errorf("%s: gaps %+v, want %+v", s.Text(req.RID), got, itl)
	}
}

func TestWaterfallWidth(t *testing.T) {
	s := testset.LoadDump(t, "a_unified_tp2.jsonl")
	for _, width := range []int{60, 80, 100, 132, 200} {
		for r := range 20 {
			var b bytes.Buffer
			if err := NewWaterfall(s, r).Write(&b, table.Style{Width: width}); err != nil {
				t.Fatal(err)
			}
			_, chart, _ := strings.Cut(b.String(), "start [ms]")
			for line := range strings.Lines(chart) {
				line = strings.TrimSuffix(line, "\n")
				if strings.ContainsAny(line, "▏▎▍▌▋▊▉█") && twwidth.Width(line) > width {
					t.Fatalf("width %d: line of %d: %s", width, twwidth.Width(line), line)
				}
			}
		}
	}
}

// Outliers of token gaps are found, with the batch that ran in them.
func TestTokens(t *testing.T) {
	s := testset.Fixture(t)
	lead := s.Lead(&s.Parts[s.Answering(&s.Requests[0])])
	tokens := measureTokens(s, lead)
	if tokens.Gaps.N != 6 || tokens.Gaps.P50 != 8_000_000 || tokens.Gaps.Max != 29_000_000 {
		t.Errorf("gaps: %+v", tokens.Gaps)
	}
	start := s.Requests[0].Start + 65_000_000
	if want := []Gap{{Start: start, Dur: 29_000_000, Batch: 7}}; !slices.Equal(tokens.Outliers, want) {
		t.Errorf("outliers %+v, want %+v", tokens.Outliers, want)
	}
}

// Bars begin and end at the right cells of a time axis with ten cells.
func TestBars(t *testing.T) {
	p := &waterfallPrinter{Waterfall: &Waterfall{From: 1000, To: 2000}, style: table.Style{ASCII: true}, bar: 10}
	for _, c := range []struct {
		spans []request.Interval
		want  string
	}{
		{[]request.Interval{{From: 1000, To: 2000}}, "##########"},
		{[]request.Interval{{From: 1000, To: 1000}}, ".         "},
		{[]request.Interval{{From: 2000, To: 2000}}, "         ."},
		{[]request.Interval{{From: 1100, To: 1200}}, " #        "},
		{[]request.Interval{{From: 1150, To: 1250}}, " --       "},
		{[]request.Interval{{From: 1000, To: 1100}, {From: 1900, To: 2000}}, "#        #"},
		{[]request.Interval{{From: 1000, To: 1100}, {From: 1000, To: 1100}}, "#         "},
	} {
		if got := p.bars(c.spans); got != c.want {
			t.Errorf("%v: %q, want %q", c.spans, got, c.want)
		}
	}
	p.style.ASCII = false
	if got := p.bars([]request.Interval{{From: 1000, To: 1150}, {From: 1550, To: 1560}}); got != "█▌   ▏    " {
		t.Errorf("blocks: %q", got)
	}
}

// If the clock of another host is wrong, a note says where its spans extend beyond those around them.
func TestClockNotes(t *testing.T) {
	s := testset.Fixture(t)
	w := NewWaterfall(s, 0)
	if want := []string{"the decode part on host c94b1e02 ends 2 ms after the gateway's span around it"}; !slices.Equal(w.ClockNotes, want) {
		t.Errorf("%q, want %q", w.ClockNotes, want)
	}
	if w := NewWaterfall(s, 1); w.ClockNotes != nil {
		t.Errorf("one host: %q", w.ClockNotes)
	}
}
