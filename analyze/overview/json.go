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
		Schema    textJSON      `json:"schema"`
		Files     []fileJSON    `json:"files"`
		Spans     *int          `json:"spans"`
		From      *int64        `json:"from_unix_ns"`
		To        *int64        `json:"to_unix_ns"`
		Requests  *requestsJSON `json:"requests"`
		Servers   []serverJSON  `json:"servers"`
		Profiles  []captureJSON `json:"profiles"`
		Clocks    []clockJSON   `json:"clocks"`
		Latencies []latencyJSON `json:"latencies"`
		Warnings  []warningJSON `json:"doubts"`
		Looked    []textJSON    `json:"looked_at"`
		Findings  []findingJSON `json:"findings"`
	}
	fileJSON struct {
		Name  textJSON `json:"name"`
		Bytes *int64   `json:"size_bytes"`
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
		Role  textJSON   `json:"role"`
		Hosts []textJSON `json:"hosts"`
		Ranks *int       `json:"ranks"`
		Size  textJSON   `json:"size"`
	}
	captureJSON struct {
		Rank     textJSON `json:"rank"`
		Device   int32    `json:"device"`
		Captured int64    `json:"captured_ns"`
		Busy     int64    `json:"busy_ns"`
		Idle     int64    `json:"idle_ns"`
	}
	clockJSON struct {
		Host   textJSON `json:"host"`
		Why    textJSON `json:"why"`
		By     textJSON `json:"by"`
		Offset int64    `json:"offset_ns"`
		Bound  *int64   `json:"bound_ns"`
	}
	latencyJSON struct {
		Metric textJSON `json:"metric"`
		N      int      `json:"n"`
		Mean   int64    `json:"mean_ns"`
		P50    int64    `json:"p50_ns"`
		P90    int64    `json:"p90_ns"`
		P99    int64    `json:"p99_ns"`
		Max    int64    `json:"max_ns"`
	}
	warningJSON struct {
		Severity textJSON `json:"severity"`
		Text     textJSON `json:"text"`
	}
	findingJSON struct {
		Kind     textJSON   `json:"kind"`
		Scope    textJSON   `json:"scope"`
		Role     textJSON   `json:"role"`
		Host     textJSON   `json:"host"`
		Rank     textJSON   `json:"rank"`
		Since    *int64     `json:"since_unix_ns"`
		Weight   float64    `json:"weight"`
		Text     textJSON   `json:"text"`
		Evidence []textJSON `json:"evidence"`
		Command  textJSON   `json:"command"`
		Args     []textJSON `json:"args"`
	}
)

// textJSON is text that is safe to print; "" is unknown.
type textJSON string

// MarshalJSON quotes t as reports do.
func (t textJSON) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return []byte(table.QuoteJSON(string(t))), nil
}

// texts is never null.
func texts(list []string) []textJSON {
	out := make([]textJSON, len(list))
	for i, s := range list {
		out[i] = textJSON(s)
	}
	return out
}

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
		Schema: Schema, Looked: texts(o.In(finding.LookedAt)), Files: []fileJSON{}, Servers: []serverJSON{}, Profiles: []captureJSON{},
		Clocks: []clockJSON{}, Latencies: []latencyJSON{}, Warnings: []warningJSON{}, Findings: []findingJSON{},
	}
	for i := range o.Files {
		v.Files = append(v.Files, fileJSON{textJSON(o.Files[i].Name), knownOr(o.Files[i].Bytes)})
	}
	if o.From != 0 {
		v.From, v.To = new(int64(o.From)), new(int64(o.To))
	}
	o.addRequests(v)
	if o.GPUs != nil {
		for i := range o.GPUs.GPUs {
			g := &o.GPUs.GPUs[i]
			v.Profiles = append(v.Profiles, captureJSON{textJSON(g.Rank), g.Device, g.Captured, g.Busy(), g.Idle.Total()})
		}
	}
	for i := range o.Clocks {
		c := &o.Clocks[i]
		v.Clocks = append(v.Clocks, clockJSON{textJSON(c.Host), textJSON(c.Why), textJSON(c.By), c.Offset, knownOr(c.Bound)})
	}
	for i := range o.Warnings {
		v.Warnings = append(v.Warnings, warningJSON{textJSON(o.Warnings[i].Severity.String()), textJSON(o.Warnings[i].Text)})
	}
	for i := range o.Findings {
		v.Findings = append(v.Findings, o.findingJSON(&o.Findings[i]))
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
		v.Servers = append(v.Servers, serverJSON{textJSON(s.Role.String()), texts(s.Hosts), knownOr(s.Ranks), textJSON(s.Size)})
	}
	for i := range o.Latencies {
		l := &o.Latencies[i]
		v.Latencies = append(v.Latencies, latencyJSON{textJSON(l.Metric), l.N, l.Mean, l.P50, l.P90, l.P99, l.Max})
	}
}

func (o *Overview) findingJSON(f *finding.Finding) findingJSON {
	role, host, rank := f.At.Parts()
	v := findingJSON{
		Kind: textJSON(f.Kind), Scope: textJSON(f.At.Scope.String()), Role: textJSON(role), Host: textJSON(host), Rank: textJSON(rank),
		Weight: math.Round(f.Cost*1e6) / 1e6, Text: textJSON(f.Text), Evidence: texts(finding.Sentences(f.Evidence)),
		Command: textJSON(o.Command(f)), Args: texts(f.Show[0]),
	}
	if f.Since != 0 {
		v.Since = new(int64(f.Since))
	}
	return v
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
		table.ShareColumn("weight", "part of the time of requests, or of ranks, that it costs; of errors, part of the requests", func(f *finding.Finding) float64 { return f.Cost }),
		table.TextColumn("text", "what, where, since when, by how much", func(f *finding.Finding) string { return f.Text }),
		table.TextColumn("command", "what shows more", func(f *finding.Finding) string { return o.Command(f) }),
	})
}
