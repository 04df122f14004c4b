package page

import (
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

const loggedFrom = trace.Time(1787000000) * 1e9

// logged returns an overview of two decode servers and one prefill server that log
// every 5 s for 5 minutes, and of the temperature of a GPU.
func logged() *overview.Overview {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f := set.Fill("m", "test")
	for k, name := range []string{"decode-0", "decode-1", "prefill-0"} {
		role, _, _ := strings.Cut(name, "-")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: name, Role: role}), Rank: trace.NoRank, GPU: series.NoGPU})
		for i := range 60 {
			at := loggedFrom + trace.Time(5*i)*1e9
			f.Add(f.Series(series.Running, p), at, float64(10*k+i))
			f.Add(f.Series(series.KVUsage, p), at, float64(k+1))
		}
	}
	gpu := f.Place(series.Place{Server: f.Server(series.Server{Host: "node-0"}), Rank: trace.NoRank, GPU: 3})
	for i := range 60 {
		f.Add(f.Series(series.GPUTemperature, gpu), loggedFrom+trace.Time(5*i)*1e9, float64(50+i))
	}
	set.Finish(series.Known{})
	return overview.New(overview.Input{Series: set, Diags: &trace.Diags{}})
}

// Each role has a figure with a curve for each server, in order of load, and so has every
// other metric. A finding is marked at its time.
func TestLogsOverTime(t *testing.T) {
	o := logged()
	o.Findings = []finding.Finding{
		{Text: "before", Since: loggedFrom - 1e9},
		{Text: "within", Since: loggedFrom + 100e9, Within: 2e9},
		{Text: "earlier", Since: loggedFrom + 50e9},
	}
	s := LogsOverTime(o, Source{Inputs: []string{"x"}})
	bodies := map[string]*chart.Panels{}
	for _, f := range s.Figures {
		if body, ok := f.Body.(*chart.Panels); ok {
			bodies[f.Title] = body
		}
	}
	decode, prefill, other := bodies["Logs of decode, 2 ranks"], bodies["Logs of prefill, 1 rank"], bodies["Other metrics"]
	if len(bodies) != 3 || decode == nil || prefill == nil || other == nil {
		t.Fatalf("figures: %v", bodies)
	}
	titles := func(p *chart.Panels) (list []string) {
		for i := range p.Panels {
			list = append(list, p.Panels[i].Title)
		}
		return list
	}
	if got := titles(decode); !slices.Equal(got, []string{"running", "KV usage"}) {
		t.Errorf("decode has %q", got)
	}
	if got := titles(other); len(got) != 1 || got[0] != "temperature, °C" {
		t.Errorf("others are %q", got)
	}
	// Each interval of 5 s has one line; the last one is the highest.
	curves := decode.Panels[0].Curves
	if len(curves) != 2 || slices.Max(curves[0].Values) != 59 || slices.Max(curves[1].Values) != 69 || slices.Max(prefill.Panels[0].Curves[0].Values) != 79 {
		t.Errorf("running: %v", curves)
	}
	if v := decode.Panels[1].Curves[1].Values[3]; v != 0.02 {
		t.Errorf("KV usage of 2 %% is drawn as %g", v)
	}
	var marks []string
	for _, m := range decode.Marks {
		marks = append(marks, m.Label+m.Text)
	}
	if !slices.Equal(marks, []string{"3earlier", "2within"}) {
		t.Errorf("marks %q", marks)
	}
}

// Of many ranks, a figure draws the one that a finding is about, although it has the fewest requests.
func TestNamedRankIsDrawn(t *testing.T) {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f := set.Fill("m", "test")
	server := f.Server(series.Server{Name: "s", Role: "decode"})
	for dp := range int16(2 * chart.Hues) {
		p := f.Place(series.Place{Server: server, Rank: trace.Rank{TP: -1, PP: -1, DP: dp, EP: -1}, GPU: series.NoGPU})
		for i := range 60 {
			f.Add(f.Series(series.Running, p), loggedFrom+trace.Time(5*i)*1e9, float64(dp+1))
			f.Add(f.Series(series.KVTokens, p), loggedFrom+trace.Time(5*i)*1e9, float64(dp+1))
		}
	}
	set.Finish(series.Known{})
	o := overview.New(overview.Input{Series: set, Diags: &trace.Diags{}})
	o.Findings = []finding.Finding{{Text: "slow", At: o.Logged.Ranks[0].Where, Since: loggedFrom + 100e9}}
	for _, f := range LogsOverTime(o, Source{Inputs: []string{"x"}}).Figures {
		if body, ok := f.Body.(*chart.Panels); ok && (len(body.Panels[0].Curves) != chart.Hues || slices.Max(body.Panels[0].Curves[0].Values) != 1 || !strings.Contains(f.Notes[0], "10 of 20 ")) {
			t.Errorf("%s: %d curves, the first up to %g, %q", f.Title, len(body.Panels[0].Curves), slices.Max(body.Panels[0].Curves[0].Values), f.Notes)
		}
	}
}

// Tiles show the maximum of each number, and where it was.
func TestTilesOfLogs(t *testing.T) {
	var got []string
	for _, tile := range loggedTiles(logged().Logged) {
		got = append(got, tile.Name+" "+tile.Value+" "+tile.Detail)
	}
	if want := []string{"Running 79 on prefill", "KV cache 3 % on prefill"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A page about logs only has no sections about requests or GPUs.
func TestPageOfLogs(t *testing.T) {
	p, err := Overview(logged(), Provenance{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range p.Sections {
		got = append(got, s.Title)
	}
	if want := []string{"Findings", "What was read", "Over time"}; len(got) != 3 || !slices.Equal(got[1:], want[1:]) {
		t.Errorf("sections %q", got)
	}
	if page := render(t, p); !strings.Contains(page, "What ranks log") {
		t.Error("no table of ranks")
	}
}
