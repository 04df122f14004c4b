package testset

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/chrometrace"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// A Dump writes an OTLP dump by hand. Times are us from the epoch below.
type Dump struct {
	Lines []string
	next  int
}

const Epoch = 1787000000 * int64(1e9) // 2026-08-17T20:53:20Z

type Attrs map[string]any

// A Span is one span; ID is set by add.
type Span struct {
	Service, Trace, Parent, Name string
	id                           string
	From, To                     float64 // us
	Attrs                        Attrs
	Failed                       bool
	schedule                     int64 // size of the batch in a schedule event at From; 0 is none
}

// Add writes s and returns its id.
func (d *Dump) Add(s Span) string {
	d.next++
	if s.id == "" {
		s.id = fmt.Sprintf("%016x", d.next)
	}
	at := func(us float64) string { return fmt.Sprint(Epoch + int64(us*1000)) }
	span := map[string]any{"traceId": s.Trace, "spanId": s.id, "parentSpanId": s.Parent, "name": s.Name, "kind": 1,
		"startTimeUnixNano": at(s.From), "endTimeUnixNano": at(s.To), "attributes": keyValues(s.Attrs), "status": map[string]any{}}
	if s.Failed {
		span["status"] = map[string]any{"code": 2}
	}
	if s.schedule > 0 {
		span["events"] = []any{map[string]any{"timeUnixNano": at(s.From), "name": "schedule", "attributes": keyValues(Attrs{"batch_size": s.schedule})}}
	}
	service := cmp.Or(s.Service, "sglang")
	resource := Attrs{"service.name": service, "telemetry.sdk.language": "python", "telemetry.sdk.name": "opentelemetry", "telemetry.sdk.version": "1.44.0"}
	line, err := json.Marshal(map[string]any{"resourceSpans": []any{map[string]any{
		"resource":   map[string]any{"attributes": keyValues(resource)},
		"scopeSpans": []any{map[string]any{"scope": map[string]any{"name": "sglang server"}, "spans": []any{span}}},
	}}})
	if err != nil {
		panic(err)
	}
	d.Lines = append(d.Lines, string(line))
	return s.id
}

func keyValues(a Attrs) []any {
	var out []any
	for k, v := range a {
		kind := "stringValue"
		switch v.(type) {
		case int, int64:
			kind, v = "intValue", fmt.Sprint(v)
		case float64:
			kind = "doubleValue"
		}
		out = append(out, map[string]any{"key": k, "value": map[string]any{kind: v}})
	}
	return out
}

// Thread adds a thread span with stages, given as name, start and end.
func (d *Dump) Thread(root Span, rootID, host, label string, tp, pid int, stages ...Span) {
	a := Attrs{"host_id": host, "thread_label": label, "pid": pid}
	if tp >= 0 {
		a["tp_rank"] = tp
	}
	from, to := stages[0].From, stages[len(stages)-1].To
	id := d.Add(Span{Trace: root.Trace, Parent: rootID, Name: label, From: from, To: to, Attrs: a})
	last := ""
	for _, s := range stages {
		s.Trace = root.Trace
		if s.Parent == "^" { // below the last stage that is directly below the root
			s.Parent = last
			d.Add(s)
			continue
		}
		s.Parent = id
		last = d.Add(s)
	}
}

// Set makes a set of the dump, with all times unchanged.
func (d *Dump) Set(t testing.TB) *request.Set {
	return assemble(t, "dump.jsonl", strings.NewReader(strings.Join(d.Lines, "\n")+"\n")).Set
}

const (
	PrefillHost = "0a6c2f7700000000000000000000aaaa"
	DecodeHost  = "c94b1e0200000000000000000000bbbb"
)

// Fixture returns a small deployment on which everything can be checked by eye: a gateway, prefill and decode on two hosts
// whose clocks differ by 2 ms, one request that goes well with a pause before its sixth token, and one that fails in the
// queue.
func Fixture(t testing.TB) *request.Set {
	var d Dump
	const good = "00000000000000000000000000000001"
	gateway := d.Add(Span{Service: "smg", Trace: good, Name: "http_request", From: 0, To: 100_000,
		Attrs: Attrs{"module": "smg", "request_id": "gnt-1", "status_code": "200"}})

	prefill := Span{Trace: good, Parent: gateway, Name: "prefill Req 11111111", From: 1000, To: 31_000,
		Attrs: Attrs{"rid": "11111111aaaa", "module": "sglang::request", "bootstrap_room": "0x7c54", "gen_ai.usage.prompt_tokens": 900}}
	id := d.Add(prefill)
	d.Thread(prefill, id, PrefillHost, "PrefillTokenizer", -1, 88, Span{Name: "tokenize", From: 1000, To: 2000})
	for tp := range 2 {
		late := float64(tp * 100)
		d.Thread(prefill, id, PrefillHost, "Prefill Scheduler", tp, 245+tp,
			Span{Name: "prefill_waiting", From: 3000 + late, To: 8000},
			Span{Name: "prefill_forward", From: 8000, To: 28_000 + late})
	}

	decode := Span{Trace: good, Parent: gateway, Name: "decode Req 22222222", From: 3500, To: 102_000,
		Attrs: Attrs{"rid": "22222222bbbb", "module": "sglang::request", "bootstrap_room": "0x7c54", "gen_ai.request.id": "chat-1",
			"gen_ai.usage.completion_tokens": 7, "gen_ai.usage.prompt_tokens": 900, "gen_ai.latency.time_to_first_token": 0.0295,
			"gen_ai.response.model": "Qwen3", "gen_ai.response.finish_reasons": `["stop"]`}}
	id = d.Add(decode)
	d.Thread(decode, id, DecodeHost, "DecodeTokenizer", -1, 88, Span{Name: "tokenize", From: 3500, To: 4500})
	stages := []Span{
		{Name: "decode_transferred", From: 5000, To: 32_000},
		{Name: "decode_waiting", From: 32_000, To: 32_500},
		{Name: "decode_forward", From: 32_500, To: 102_000},
		{Name: "fake_output", Parent: "^", From: 32_500, To: 33_000},
	}
	for step, from := range []float64{33_000, 41_000, 49_000, 57_000, 65_000, 94_000} {
		to := from + 8000
		if step == 4 {
			to = 94_000 // a long prefill of other requests goes first
		}
		stages = append(stages, Span{Name: "decode_loop", Parent: "^", From: from, To: to, schedule: int64(3 + step)})
	}
	d.Thread(decode, id, DecodeHost, "Decode Scheduler", 0, 245, stages...)

	const bad = "00000000000000000000000000000002"
	failed := Span{Trace: bad, Name: "prefill Req 33333333", From: 200_000, To: 201_000,
		Attrs: Attrs{"rid": "33333333cccc", "module": "sglang::request"}}
	id = d.Add(failed)
	d.Add(Span{Trace: bad, Parent: id, Name: "Prefill Scheduler", From: 200_100, To: 201_000, Failed: true,
		Attrs: Attrs{"host_id": PrefillHost, "thread_label": "Prefill Scheduler", "pid": 245, "tp_rank": 0, "reason": "Prefill bootstrap failed for request"}})

	// A service without rules, a span that ends before it starts, and one exported twice.
	d.Add(Span{Service: "billing", Trace: "00000000000000000000000000000003", Name: "charge", From: 300_000, To: 300_250})
	d.Add(Span{Service: "billing", Trace: "00000000000000000000000000000003", Name: "charge", From: 300_000, To: 299_999})
	d.Lines = append(d.Lines, d.Lines[len(d.Lines)-2])
	return d.Set(t)
}

// WithStray returns 60 requests of 4 tokens, one after another for 0.6 s, one of which has a forged time.
func WithStray(t testing.TB) *request.Set {
	t.Helper()
	var d Dump
	for i := range 60 {
		from := float64(i) * 10_000
		if i == 30 {
			from = -1e12 // 11 days before
		}
		d.Add(Span{Trace: fmt.Sprintf("%032x", i+1), Name: "llm_request", Service: "vllm", From: from, To: from + 5000,
			Attrs: Attrs{"gen_ai.request.id": fmt.Sprint("r", i), "gen_ai.usage.completion_tokens": 4, "gen_ai.latency.time_to_first_token": 0.001}})
	}
	return d.Set(t)
}

// AddEvent adds an event, at a time in us, to the span on line i.
func (d *Dump) AddEvent(i int, name string, at float64, a Attrs) {
	event, err := json.Marshal(map[string]any{"name": name, "timeUnixNano": fmt.Sprint(Epoch + int64(at*1000)), "attributes": keyValues(a)})
	if err != nil {
		panic(err)
	}
	d.Lines[i] = strings.Replace(d.Lines[i], `"status":{}`, `"events":[`+string(event)+`],"status":{}`, 1)
}

// CheckSpans reads data for a fuzz test of a reader whose spans are JSON objects: an added span must have an identity and a
// time and be in its place in the table, and reported positions must be within the file.
func CheckSpans(t *testing.T, read func(to *spantable.Filler, in io.Reader), data string) {
	t.Helper()
	table := spantable.New(&trace.Diags{})
	read(table.Fill("f", "fuzz"), strings.NewReader(data))
	for i := range table.Len() {
		s := table.Span(i)
		if s.TraceHi|s.TraceLo == 0 || s.ID == 0 || s.Start <= 0 || s.End < s.Start {
			t.Errorf("%+v", s)
		}
		if at := table.Pos(i).Offset; at < 0 || at >= int64(len(data)) || data[at] != '{' {
			t.Errorf("span %d stands at %d", i, at)
		}
	}
	if table.Files[0].Spans != table.Len() {
		t.Errorf("%d spans in the file, %d in the table", table.Files[0].Spans, table.Len())
	}
	for _, d := range table.Diags.All() {
		if d.Pos.File != "f" || d.Pos.Offset > int64(len(data)) {
			t.Errorf("%+v", d)
		}
	}
}

// Text renders a report, failing the test on any error.
func Text(t testing.TB, r *table.Table, f table.Format, s table.Style) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b, f, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// CSV renders a report as CSV, which has all columns and rows.
func CSV(t *testing.T, r *table.Table) string {
	t.Helper()
	return Text(t, r, table.FormatCSV, table.Style{})
}

// TorchSet reads PyTorch traces, the ranks of a set.
func TorchSet(t testing.TB, paths ...string) (*profile.Set, []*profile.Profile) {
	t.Helper()
	set := &profile.Set{Syms: trace.NewSymbols()}
	args := trace.NewArgs()
	var profiles []*profile.Profile
	for i, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var r io.Reader = f
		if strings.HasSuffix(path, ".gz") {
			if r, err = gzip.NewReader(f); err != nil {
				t.Fatal(err)
			}
		}
		p, err := chrometrace.Read(path, r, chrometrace.Options{Syms: set.Syms, Args: args})
		if err != nil {
			t.Fatal(err)
		}
		profiles = append(profiles, p)
		set.Ranks = append(set.Ranks, strconv.Itoa(i))
		set.Streams = append(set.Streams, p.Stream(set.Syms, args, func(string) (int32, int32) { return int32(i), -1 }))
	}
	return set, profiles
}

// Rank parses a rank as written by producers and truths: "TP0-PP0-DP1".
func Rank(t testing.TB, text string) trace.Rank {
	t.Helper()
	r, err := trace.ParseRank(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// CollectiveMatches are collectives held in memory.
type CollectiveMatches struct {
	Points  []profile.CollectiveMatch // by first arrival
	Kernels []profile.Part            // by rank and start
}

// Matches implements [profile.CollectiveMatches].
func (m *CollectiveMatches) Matches(bool) iter.Seq[*profile.CollectiveMatch] {
	return each(m.Points)
}

// Parts implements [profile.CollectiveMatches].
func (m *CollectiveMatches) Parts() iter.Seq[*profile.Part] {
	return each(slices.SortedStableFunc(slices.Values(m.Kernels), func(a, b profile.Part) int { return cmp.Compare(a.Rank, b.Rank) }))
}

func each[T any](list []T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range list {
			if !yield(&list[i]) {
				return
			}
		}
	}
}
