package page

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/page/chart"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/assembly"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// simulate returns the requests of a simulated incident.
func simulate(t testing.TB, config simulator.Config) *request.Set {
	t.Helper()
	dump, _ := testinput.Simulate(t, config)
	return readDump(t, dump)
}

func readDump(t testing.TB, dump []byte) *request.Set {
	t.Helper()
	d := spantable.New(new(trace.Diags))
	if err := otlpjson.Read(d, "sim", bytes.NewReader(dump)); err != nil {
		t.Fatal(err)
	}
	return assembly.Build(d).Set
}

// hostile are names that try to act as markup or code. If any succeeds, it sets window.hacked.
var hostile = []string{
	`</script><script>window.hacked=1</script>`,
	`"><img src=x onerror="window.hacked=2">`,
	`'><svg onload=window.hacked=3>`,
	`</title></text></svg><iframe srcdoc="<script>parent.hacked=4</script>">`,
	"a\u2028b\u2029c\u202ed {{.}} ${window.hacked=5} <!--",
	`]]></style><style>*{display:none}</style>&lt;b&gt;`,
	`javascript:window.hacked=6//<a href="javascript:window.hacked=7">`,
}

// hostileName returns the i-th hostile name; all are different.
func hostileName(i int) string { return fmt.Sprintf("%s #%d", hostile[i%len(hostile)], i) }

// sampleGPUs returns devices of n ranks that ran kernels with the given names; they
// take 6 % longer on the last rank.
func sampleGPUs(n, kernels int, name func(int) string) *gpu.GPUs {
	g := &gpu.GPUs{}
	for r := range n {
		device := gpu.GPU{Rank: fmt.Sprintf("TP%d-PP0-DP0 (node%d)", r, r/8), First: 1000, Last: 1000 + 10_000_000}
		device.Running[1<<kernelname.ClassCompute] = 6_000_000
		device.Running[1<<kernelname.ClassCompute|1<<kernelname.ClassCommunication] = 500_000
		device.Running[1<<kernelname.ClassCommunication] = 1_000_000
		device.Running[1<<kernelname.ClassMemory] = 250_000
		device.Idle.Time = [...]int64{1_500_000, 50_000, 700_000}
		g.GPUs = append(g.GPUs, device)
		for k := range kernels {
			total, ratio := int64(1_000_000/(k+1)), 1.0
			if r == n-1 {
				total, ratio = total*106/100, 1.06
			}
			g.Kernels = append(g.Kernels, gpu.RankKernel{Rank: device.Rank, Name: name(k), Class: kernelname.ClassCompute, Ranks: n,
				Summary: distribution.Summary{N: 10, Total: total, P50: total / 10, P99: total / 9}, RelTotal: ratio, RelP50: ratio})
		}
	}
	return g
}

// samplePage returns a page with every kind of figure, with hostile names.
func samplePage(t testing.TB) Page {
	t.Helper()
	dump, _ := testinput.Simulate(t, simulator.DefaultConfig(3))
	name := strings.ReplaceAll(hostile[1], `"`, `\"`) // as JSON has it
	dump = bytes.ReplaceAll(dump, []byte(`"name":"prefill_forward"`), []byte(`"name":"`+name+`"`))
	set := readDump(t, dump)
	src := Source{Inputs: []string{"it's here.jsonl", hostile[0]}}
	timeline, err := load.New(set, 0)
	if err != nil {
		t.Fatal(err)
	}
	var findings []finding.Finding
	for i := range hostile {
		findings = append(findings, finding.Finding{Kind: finding.Tail, Text: hostileName(i), NoWithout: hostileName(i), Evidence: []finding.Evidence{{Text: hostileName(i + 1)}}, Show: [][]string{{"--tail", hostile[i]}}})
	}
	p := Page{Title: "Report " + hostile[0], Subtitle: hostile[2], Tiles: []Tile{{Name: "Requests", Value: hostile[3], Detail: hostile[4], Href: "#findings"}}, Provenance: Provenance{Version: "v1", Command: hostile[5]},
		Sections: []Section{Summary(lookedAt(findings, hostile), src, newLinks(nil)), {Title: "read", Facts: []overview.Fact{{Name: "read", Text: hostile[1]}}, Notes: hostile}}}
	p.Sections = append(p.Sections, Requests(measured(set), timeline, src)...)
	gpus := sampleGPUs(8, 30, hostileName)
	p.Sections = append(p.Sections, Ranks(&finders.Measured{GPUs: gpus}, src)...)
	waits := make([][]int64, len(hostile))
	for i := range waits {
		waits[i] = make([]int64, len(hostile))
		for k := range waits[i] {
			waits[i][k] = int64(1_000_000 * k * (k + i))
		}
	}
	dots := &chart.Scatter{Value: "E2E"}
	panels := &chart.Panels{From: 0, To: 3_000_000_000, Times: []trace.Time{1_000_000_000, 2_000_000_000}}
	for i, name := range hostile {
		dots.Groups = append(dots.Groups, chart.Group{Name: name, Color: i, All: 1, Dots: []chart.Dot{{Name: name, Time: trace.Time(i * 1_000_000), Dur: int64(1000 + i*i*100_000)}}})
		panels.Panels = append(panels.Panels, chart.Panel{Title: name, Unit: table.Number, Curves: []chart.Curve{{Name: name, Color: i, Values: []float64{1, 2}}, {Name: name + "!", Color: i, Values: []float64{2, 1}}}})
	}
	panels.Marks = []chart.Mark{{First: 1_200_000_000, Time: 1_500_000_000, Last: 1_800_000_000, Label: "1", Text: hostile[1]}}
	p.Sections = append(p.Sections, Section{Title: hostile[2], Lead: hostile[3], Points: hostile, Figures: []*Figure{
		WaitMatrix(hostile, waits, src),
		{Title: "Dots " + hostile[1], Command: hostile[1], Notes: hostile, Body: dots},
		{Title: "Panels", Body: panels},
		{Title: "Lateness", Body: heatOf(hostile)},
		{Title: "Roofline", Body: roofOf(hostile)},
		{Title: "Layers", Body: stripOf(hostile)},
	}})
	return p
}

// roofOf returns a roofline with a dot for each name.
func roofOf(names []string) *chart.Roofline {
	r := &chart.Roofline{Bandwidth: 3.35, Peaks: []chart.Peak{{Name: "16 bits", TFLOPs: 989.5}, {Name: "8 bits", TFLOPs: 1979}}}
	for i, name := range names {
		r.Groups = append(r.Groups, chart.RoofGroup{Name: name, Color: i, Dots: []chart.RoofDot{{Name: name, Intensity: float64(1 + i), TFLOPs: float64(1+i) * 2, Time: "1ms", Share: 0.6}}})
	}
	return r
}

// stripOf returns a strip with a layer for each name, each of two pieces of 10 and 30 us.
func stripOf(names []string) *chart.Strip {
	s := &chart.Strip{Parts: []chart.Part{{Name: "norm"}, {Name: "GEMM", Color: 1}}}
	for _, name := range names {
		s.Rows = append(s.Rows, chart.StripRow{Name: name, Pieces: []chart.StripPiece{{From: 0, To: 10_000, Text: name}, {Part: 1, From: 10_000, To: 40_000, Text: "GEMM: " + name}}})
	}
	return s
}

// measured returns an overview of requests with everything that finders look at, and no findings.
func measured(set *request.Set) *overview.Overview {
	return &overview.Overview{Input: overview.Input{Requests: set}, Measured: finders.Measure(finders.Inputs{Requests: set})}
}

// heatOf returns a heat map over time with a row for each name.
func heatOf(names []string) *chart.TimeHeat {
	h := &chart.TimeHeat{From: 1_000_000_000, To: 2_000_000_000, Steps: latenessSteps, Unit: table.Share, What: "lateness"}
	for i, name := range names {
		row := chart.HeatRow{Name: name, Values: []float64{0, -0.03, 0.2, math.NaN(), float64(i)}, Texts: []string{name, name, name, "", name}}
		h.Groups = append(h.Groups, chart.HeatGroup{Name: name, From: 1_200_000_000, To: 2_000_000_000, Rows: []chart.HeatRow{row, row}})
	}
	return h
}

func render(t testing.TB, p Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// lookedAt returns a result with findings, and with checks that have the given names.
func lookedAt(findings []finding.Finding, names []string) *finders.Result {
	r := &finders.Result{Findings: findings}
	for _, name := range names {
		r.Checks = append(r.Checks, finders.FinderCheck{Check: finding.Check{What: name, Of: "request", N: 1}})
	}
	return r
}
