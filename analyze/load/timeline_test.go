package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

func newTimeline(t testing.TB, s *request.Set, bucket time.Duration) *Timeline {
	t.Helper()
	tl, err := New(s, bucket)
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

// played returns the requests of a simulated run.
func played(t testing.TB, c simulator.Config) *request.Set {
	t.Helper()
	dump, _ := testinput.Simulate(t, c)
	return testset.BuildSet(t, "sim", bytes.NewReader(dump))
}

func seriesOf(t testing.TB, tl *Timeline, name string) *Series {
	t.Helper()
	var names []string
	for i := range tl.Series {
		if tl.Series[i].Location.String() == name {
			return &tl.Series[i]
		}
		names = append(names, tl.Series[i].Location.String())
	}
	t.Fatalf("no series %q; there are %q", name, names)
	return nil
}

// column formats one number of every point, without trailing zeros.
func column(s *Series, of func(*Point) float64) string {
	var out []string
	for i := range s.Points {
		out = append(out, fmt.Sprintf("%.3g", of(&s.Points[i])))
	}
	for len(out) > 0 && out[len(out)-1] == "0" {
		out = out[:len(out)-1]
	}
	return strings.Join(out, " ")
}

// The fixture can be checked by eye: buckets have 10 ms, and the numbers are those in fixture_test.go.
func TestTimelineOfFixture(t *testing.T) {
	tl := newTimeline(t, testset.Fixture(t), 10*time.Millisecond)
	if tl.N() != 21 || int64(tl.Start(0)) != testset.Epoch {
		t.Fatalf("%d buckets from %v", tl.N(), tl.Start(0))
	}
	for _, c := range []struct {
		series, what string
		of           func(*Point) float64
		want         string
	}{
		{"all", "arrivals", func(p *Point) float64 { return float64(p.Arrivals) }, "1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1"},
		{"all", "running", func(p *Point) float64 { return p.Running }, "1 1 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 0 0 0 1"},
		{"all", "output", func(p *Point) float64 { return float64(p.Output) }, "0 0 0 1 2 1 1 0 0 1 1"},
		{"prefill", "running", func(p *Point) float64 { return p.Running }, "0.2 1 0.8"},
		{"prefill", "queued", func(p *Point) float64 { return p.Queued }, "0.5"},
		{"prefill", "prompt tokens", func(p *Point) float64 { return max(0, float64(p.Prefill)) }, "0 0 900"},
		{"prefill TP1", "queued", func(p *Point) float64 { return p.Queued }, "0.49"},
		{"decode", "transferring", func(p *Point) float64 { return p.Transferring }, "0.5 1 1 0.2"},
		{"prefill", "busy", func(p *Point) float64 { return p.Busy }, "0.2 1 0.8"},
		{"decode", "running", func(p *Point) float64 { return p.Running }, "0 0 0 0.75 1 1 1 1 1 1 0.2"},
		{"decode TP0", "output", func(p *Point) float64 { return float64(p.Output) }, "0 0 0 1 2 1 1 0 0 1 1"},
	} {
		if got := column(seriesOf(t, tl, c.series), c.of); got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.what, c.series, got, c.want)
		}
	}
	loops := seriesOf(t, tl, "decode").Stages[len(tl.Stages)-1]
	if got := fmt.Sprint(loops[3:8]); got != "[{1 8000000 8000000} {2 8000000 8000000} {1 8000000 8000000} {1 29000000 29000000} {0 0 0}]" {
		t.Errorf("decode_loop from 30 ms on: %s", got)
	}
}

// The buckets of any grid add up to the same totals. TestTimelineIsGroups in package
// requests compares them with other reports.
func TestTimelineAddsUp(t *testing.T) {
	for _, mode := range []simulator.Mode{simulator.PDGateway, simulator.PDDirect, simulator.Unified} {
		c := simulator.DefaultConfig(5)
		c.Mode = mode
		s := played(t, c)
		whole := newTimeline(t, s, 24*time.Hour)
		if whole.N() != 1 {
			t.Fatalf("%v: %d buckets of a day", mode, whole.N())
		}
		for _, bucket := range []time.Duration{0, 7 * time.Millisecond, time.Second} {
			tl := newTimeline(t, s, bucket)
			for i := range tl.Series {
				compareSums(t, fmt.Sprintf("%v, %v", mode, bucket), tl, whole, i)
			}
		}
	}
}

// compareSums compares the sum of the buckets of series i with a single bucket.
func compareSums(t *testing.T, name string, tl, whole *Timeline, i int) {
	t.Helper()
	s, want := &tl.Series[i], whole.Series[i].Points[0]
	var sum Point
	for b := range s.Points {
		p := &s.Points[b]
		from, to := tl.bounds(b)
		part := float64(to-from) / float64(tl.To-tl.From)
		sum.Arrivals += p.Arrivals
		sum.Output += p.Output
		sum.Prefill += max(0, p.Prefill)
		for _, v := range []struct {
			to *float64
			v  float64
		}{{&sum.Running, p.Running}, {&sum.Queued, p.Queued}, {&sum.Transferring, p.Transferring}, {&sum.Busy, p.Busy}} {
			if to > from {
				*v.to += v.v * part
			}
		}
		if p.Busy > 1+1e-9 || p.Running < 0 {
			t.Errorf("%s: %s: busy %g, running %g", name, &s.Location, p.Busy, p.Running)
		}
	}
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"arrivals", float64(sum.Arrivals), float64(want.Arrivals)},
		{"output", float64(sum.Output), float64(want.Output)},
		{"prefill", float64(sum.Prefill), max(0, float64(want.Prefill))},
		{"running", sum.Running, want.Running},
		{"queued", sum.Queued, want.Queued},
		{"transferring", sum.Transferring, want.Transferring},
		{"busy", sum.Busy, want.Busy},
	} {
		if math.IsNaN(c.got) != math.IsNaN(c.want) || math.Abs(c.got-c.want) > 1e-6*max(1, c.want) {
			t.Errorf("%s: %s: %s is %g in all, want %g", name, &s.Location, c.what, c.got, c.want)
		}
	}
}

// The lead ranks of a role have all of its arrivals, and one of them has the most running requests.
func TestTimelineSharesAndImbalance(t *testing.T) {
	tl := newTimeline(t, played(t, simulator.DefaultConfig(3)), 0)
	for b := range tl.N() {
		sum, most, mean := 0.0, 0.0, 0.0
		for i := range tl.Series {
			if s := &tl.Series[i]; s.Lead && s.Location.Role == request.Decode {
				sum += s.Points[b].Share
				most = max(most, s.Points[b].Running)
				mean += s.Points[b].Running / 2
			}
		}
		role := seriesOf(t, tl, "decode").Points[b]
		if role.Arrivals > 0 && math.Abs(sum-1) > 1e-9 {
			t.Errorf("bucket %d: shares add up to %g", b, sum)
		}
		if mean > 0 && math.Abs(role.Imbalance-most/mean) > 1e-9 {
			t.Errorf("bucket %d: imbalance %g, want %g", b, role.Imbalance, most/mean)
		}
	}
}

func TestTimelineRefusesTooManyBuckets(t *testing.T) {
	if _, err := New(testset.Fixture(t), time.Nanosecond); err == nil || !strings.Contains(err.Error(), "--bucket 1ns: that is too short") {
		t.Errorf("%v", err)
	}
}

func TestTimelineOfNothing(t *testing.T) {
	s := testset.BuildSet(t, "empty", strings.NewReader(`{"resourceSpans":[]}`))
	tl := newTimeline(t, s, 0)
	var b bytes.Buffer
	if err := tl.Write(&b, table.Style{}); err != nil || !strings.Contains(b.String(), "no requests") {
		t.Errorf("%v: %q", err, b.String())
	}
	if n := tl.Report().Len(); n != 0 {
		t.Errorf("%d rows", n)
	}
}

// A request with a forged time does not stretch one second of requests to a year.
func TestTimelineLeavesOutStrays(t *testing.T) {
	s := testset.WithStray(t)
	tl := newTimeline(t, s, 0)
	if tl.Outside != 1 || tl.To-tl.From > 2_000_000_000 {
		t.Errorf("%d left out, from %v to %v", tl.Outside, tl.From, tl.To)
	}
	if got := seriesOf(t, tl, "all"); len(got.Points) > 70 {
		t.Errorf("%d buckets", len(got.Points))
	}
	tokens := int64(0)
	for _, p := range seriesOf(t, tl, "all").Points {
		tokens += p.Output
	}
	if tokens != 59*4 {
		t.Errorf("%d tokens, want %d", tokens, 59*4)
	}
}

// A request whose threads are lost does not become a server of its own, and if its
// lead rank is lost, no other rank becomes the lead.
func TestTimelineOfLostThreads(t *testing.T) {
	var d testset.Dump
	for i := range 6 {
		from := float64(i) * 10_000
		root := testset.Span{Trace: fmt.Sprintf("%032x", i+1), Name: " Req 1234567" + fmt.Sprint(i), From: from, To: from + 8000,
			Attrs: testset.Attrs{"rid": fmt.Sprint("1234567", i), "module": "sglang::request"}}
		id := d.Add(root)
		for tp := range 2 {
			if i == 0 || i == 1 && tp == 0 {
				continue // lost
			}
			d.Thread(root, id, testset.DecodeHost, "Scheduler", tp, 245+tp, testset.Span{Name: "prefill_forward", From: from + 1000, To: from + 7000})
		}
	}
	var got []string
	tl := newTimeline(t, d.Set(t), 0)
	for i := range tl.Series {
		got = append(got, fmt.Sprintf("%s %v", &tl.Series[i].Location, tl.Series[i].Lead))
	}
	want := "[all false unified false TP0 true TP1 false]"
	if fmt.Sprint(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestGoldenTimeline(t *testing.T) {
	tl := newTimeline(t, testset.Fixture(t), 5*time.Millisecond)
	for name, style := range map[string]table.Style{"timeline.text": {}, "timeline_80_ascii.text": {Width: 80, ASCII: true}} {
		var b bytes.Buffer
		if err := tl.Write(&b, style); err != nil {
			t.Fatal(err)
		}
		testset.CompareGolden(t, name, b.String())
	}
	coarse := newTimeline(t, testset.Fixture(t), 100*time.Millisecond)
	for _, f := range []table.Format{table.FormatMarkdown, table.FormatCSV, table.FormatJSON} {
		testset.CompareGolden(t, "timeline."+string(f), testset.Text(t, coarse.Report(), f, table.Style{}))
	}
}

// The drawing keeps to the width and, on request, to ASCII.
func TestTimelineFits(t *testing.T) {
	c := simulator.DefaultConfig(2)
	c.Decode.DP, c.Requests = 12, 400
	s := played(t, c)
	for _, style := range []table.Style{{Width: 120}, {Width: 100, ASCII: true}} {
		for _, bucket := range []time.Duration{0, 20 * time.Millisecond, 10 * time.Second} {
			tl := newTimeline(t, s, bucket)
			var b bytes.Buffer
			if err := tl.Write(&b, style, tl.Start(tl.N()/2)); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				line = strings.TrimRight(line, "\n")
				if strings.HasPrefix(line, "note: ") {
					continue
				}
				if w := twwidth.Width(line); w > style.Width {
					t.Errorf("%d columns: %s", w, line)
				}
				if style.ASCII && strings.IndexFunc(line, func(r rune) bool { return r > 126 }) >= 0 {
					t.Errorf("not ASCII: %s", line)
				}
			}
			if !strings.Contains(b.String(), "of the 12 lead ranks") {
				t.Errorf("nothing is said of the ranks that are not drawn:\n%s", b.String())
			}
		}
	}
}

func TestTimelineJSON(t *testing.T) {
	for _, r := range []*table.Table{newTimeline(t, played(t, simulator.DefaultConfig(1)), 0).Report()} {
		var v struct {
			Schema string           `json:"schema"`
			Rows   []map[string]any `json:"rows"`
		}
		if err := json.Unmarshal([]byte(testset.Text(t, r, table.FormatJSON, table.Style{})), &v); err != nil || len(v.Rows) != r.Len() {
			t.Errorf("%s: %v, %d of %d rows", v.Schema, err, len(v.Rows), r.Len())
		}
	}
}

func BenchmarkTimeline(b *testing.B) {
	s := testset.LoadDump(b, "d_big_tp2.jsonl.zst")
	b.ReportAllocs()
	for b.Loop() {
		newTimeline(b, s, 0)
	}
}
