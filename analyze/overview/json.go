package overview

import (
	"io"
	"math"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/request"
)

// The object of an overview. Fields are only ever added; docs/METRICS.md defines them.
// Unknown is null, times and durations are whole ns.
type (
	overviewJSON struct {
		Schema    table.JSONText   `json:"schema"`
		Files     []fileJSON       `json:"files"`
		Spans     *int             `json:"spans"`
		From      *int64           `json:"from_unix_ns"`
		To        *int64           `json:"to_unix_ns"`
		Requests  *requestsJSON    `json:"requests"`
		Servers   []serverJSON     `json:"servers"`
		Profiles  []captureJSON    `json:"profiles"`
		Clocks    []clockJSON      `json:"clocks"`
		Latencies []latencyJSON    `json:"latencies"`
		Warnings  []warningJSON    `json:"doubts"`
		Looked    []table.JSONText `json:"looked_at"`
		Findings  []finding.Object `json:"findings"`
	}
	fileJSON struct {
		Name  table.JSONText `json:"name"`
		Bytes *int64         `json:"size_bytes"`
	}
	requestsJSON struct {
		N          int      `json:"n"`
		Finished   int      `json:"finished"`
		Aborted    int      `json:"aborted"`
		Failed     int      `json:"failed"`
		Unfinished int      `json:"unfinished"`
		Rate       *float64 `json:"per_second"`
		PromptRate *float64 `json:"prompt_tokens_per_second"`
		OutputRate *float64 `json:"output_tokens_per_second"`
	}
	serverJSON struct {
		Role  table.JSONText   `json:"role"`
		Hosts []table.JSONText `json:"hosts"`
		Ranks *int             `json:"ranks"`
		Size  table.JSONText   `json:"size"`
	}
	captureJSON struct {
		Rank     table.JSONText `json:"rank"`
		Device   int32          `json:"device"`
		Captured int64          `json:"captured_ns"`
		Busy     int64          `json:"busy_ns"`
		Idle     int64          `json:"idle_ns"`
	}
	clockJSON struct {
		Host   table.JSONText `json:"host"`
		Why    table.JSONText `json:"why"`
		By     table.JSONText `json:"by"`
		Offset int64          `json:"offset_ns"`
		Bound  *int64         `json:"bound_ns"`
	}
	latencyJSON struct {
		Metric table.JSONText `json:"metric"`
		N      int            `json:"n"`
		Mean   int64          `json:"mean_ns"`
		P50    int64          `json:"p50_ns"`
		P90    int64          `json:"p90_ns"`
		P99    int64          `json:"p99_ns"`
		Max    int64          `json:"max_ns"`
	}
	warningJSON struct {
		Severity table.JSONText `json:"severity"`
		Text     table.JSONText `json:"text"`
	}
)

// knownOr returns nil for what is not known.
func knownOr[T int | int64](v T) *T {
	if v == request.Unknown {
		return nil
	}
	return &v
}

func rateJSON(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return new(math.Round(v*1e6) / 1e6)
}

func (o *Overview) writeJSON(w io.Writer) error {
	text, err := table.Codec.MarshalIndent(o.object(), "", " ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// object is the overview as it is written.
func (o *Overview) object() *overviewJSON {
	v := &overviewJSON{
		Schema: Schema, Looked: table.JSONTexts(o.Looked), Files: []fileJSON{}, Servers: []serverJSON{}, Profiles: []captureJSON{},
		Clocks: []clockJSON{}, Latencies: []latencyJSON{}, Warnings: []warningJSON{}, Findings: []finding.Object{},
	}
	for i := range o.Files {
		v.Files = append(v.Files, fileJSON{table.JSONText(o.Files[i].Name), knownOr(o.Files[i].Bytes)})
	}
	if o.From != 0 {
		v.From, v.To = new(int64(o.From)), new(int64(o.To))
	}
	o.addRequests(v)
	if o.GPUs != nil {
		for i := range o.GPUs.GPUs {
			g := &o.GPUs.GPUs[i]
			v.Profiles = append(v.Profiles, captureJSON{table.JSONText(g.Rank), g.Device, g.Captured, g.Busy(), g.Idle.Total()})
		}
	}
	for i := range o.Clocks {
		c := &o.Clocks[i]
		v.Clocks = append(v.Clocks, clockJSON{table.JSONText(c.Host), table.JSONText(c.Why), table.JSONText(c.By), c.Offset, knownOr(c.Bound)})
	}
	for i := range o.Warnings {
		v.Warnings = append(v.Warnings, warningJSON{table.JSONText(o.Warnings[i].Severity.String()), table.JSONText(o.Warnings[i].Text)})
	}
	for i := range o.Findings {
		v.Findings = append(v.Findings, o.Findings[i].Object(o.again()))
	}
	return v
}

func (o *Overview) addRequests(v *overviewJSON) {
	if o.Requests == nil {
		return
	}
	v.Spans = &o.Spans
	v.Requests = &requestsJSON{
		len(o.Requests.Requests), o.Statuses[request.Finished], o.Statuses[request.Aborted], o.Statuses[request.Failed],
		o.Statuses[request.Unfinished], rateJSON(o.RequestRate), rateJSON(o.PromptRate), rateJSON(o.OutputRate),
	}
	for i := range o.Servers {
		s := &o.Servers[i]
		v.Servers = append(v.Servers, serverJSON{table.JSONText(s.Role.String()), table.JSONTexts(s.Hosts), knownOr(s.Ranks), table.JSONText(s.Size)})
	}
	for i := range o.Latencies {
		l := &o.Latencies[i]
		v.Latencies = append(v.Latencies, latencyJSON{table.JSONText(l.Metric), l.N, l.Mean, l.P50, l.P90, l.P99, l.Max})
	}
}

// findingsReport makes a table of the findings.
func (o *Overview) findingsReport() *table.Table {
	part := func(k int) func(*finding.Finding) string {
		return func(f *finding.Finding) string {
			role, host, rank := f.At.Parts()
			return [...]string{role, host, rank}[k]
		}
	}
	return table.New(Schema, o.findingsTitle(), o.Findings, []table.Field[finding.Finding]{
		table.TextColumn("kind", "straggler, slower, load, imbalance, transfer, memory, errors, pipeline, gpu, tail or change", func(f *finding.Finding) string { return string(f.Kind) }),
		table.TextColumn("scope", "all, a role, or a rank", func(f *finding.Finding) string { return f.At.Scope.String() }),
		table.TextColumn("role", "of the server", part(0)),
		table.TextColumn("host", "machine", part(1)),
		table.TextColumn("rank", "parallel ranks", part(2)),
		{Column: table.Column{Name: "since", Unit: table.Instant, Doc: "when it began; unknown is from the beginning on"},
			Cell: func(f *finding.Finding) table.Cell { return table.Cell{N: int64(f.Since), Unknown: f.Since == 0} }},
		table.ShareColumn("weight", "part of the time of requests, or of ranks, that it costs; of errors, part of the requests", func(f *finding.Finding) float64 { return f.Weight }),
		table.TextColumn("text", "what, where, since when, by how much", func(f *finding.Finding) string { return f.Text }),
		table.TextColumn("command", "what shows more", func(f *finding.Finding) string { return o.Command(f) }),
	})
}
