package requests

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// List is Requests for some requests, given by indexes into s.Requests.
func List(s *request.Set, some []int) *table.Table {
	rows := order.Each(some, func(r int) request.Request { return s.Requests[r] })
	return listOf(s, rows)
}

// Requests makes the table of the requests of s, sorted by start.
func Requests(s *request.Set) *table.Table {
	r := listOf(s, s.Requests)
	if len(s.Requests) == 0 {
		r.Note("%s", NoRequests)
	}
	few := 0
	for i := range s.AllRequests() {
		if n := s.Requests[i].Metrics.ITL.N; n > 0 && n < 100 {
			few++
		}
	}
	if few > 0 {
		r.Note("itl p99 of fewer than 100 gaps is their maximum: %d of %d requests", few, len(s.Requests))
	}
	return r
}

// listOf makes the table of some requests of s.
func listOf(s *request.Set, rows []request.Request) *table.Table {
	return table.New("sgtrace.requests/v1", "Requests", rows, requestFields(s)).
		Stay("ttft", "e2e", "status").Leave("roles", "tokens", "itl p50", "itl p90")
}

// requestFields returns the columns of the list, in the order of a request's life.
func requestFields(s *request.Set) []table.Field[request.Request] {
	type R = request.Request
	ns := func(name, scale, doc string, of func(*R) int64) table.Field[R] {
		return table.NsColumn(name, doc, of).OnScale(scale)
	}
	of := func(m *metric.Metric, scale string) table.Field[R] {
		return ns(m.Name, scale, m.Doc, func(r *R) int64 { return m.Of(&r.Metrics) })
	}
	return []table.Field[R]{
		table.TimeColumn("time", "start of the outermost span, Unix time", func(r *R) trace.Time { return r.Start }),
		table.TextColumn("rid", "the user's request ID if known, else the server's", func(r *R) string { return s.Text(r.RID) }),
		table.TextColumn("roles", "roles of the servers that worked on it", func(r *R) string { return s.RolesOf(r) }),
		of(metric.Queue, "request"), of(metric.Prefill, "request"), of(metric.Transfer, "request"), of(metric.Decode, "request"),
		table.CountColumn("tokens", "tokens generated", func(r *R) int64 { return r.Metrics.CompletionTokens }),
		ns("itl p50", "token", "gap between consecutive tokens: median, nearest rank", func(r *R) int64 { return r.Metrics.ITL.P50 }),
		ns("itl p90", "token", "gap between consecutive tokens: 90th percentile, nearest rank", func(r *R) int64 { return r.Metrics.ITL.P90 }),
		ns("itl p99", "token", "gap between consecutive tokens: 99th percentile, nearest rank", func(r *R) int64 { return r.Metrics.ITL.P99 }),
		ns("itl max", "token", "longest gap between consecutive tokens", func(r *R) int64 { return r.Metrics.ITL.Max }).InDetail(),
		of(metric.TPOT, "token").InDetail(), of(metric.TTFT, "request"), of(metric.E2E, "request"), of(metric.Unaccounted, "request").InDetail(),
		table.TextColumn("status", "how the request ended", func(r *R) string { return r.Status.String() }),
		reasonField(s),
		table.TextColumn("flags", "doubts about the row; docs/METRICS.md defines the flags", func(r *R) string { return r.Flags.String() }),
		table.CountColumn("prompt tokens", "tokens of the prompt", func(r *R) int64 { return r.Metrics.PromptTokens }).InDetail(),
		table.CountColumn("cached tokens", "tokens of the prompt found in the cache", func(r *R) int64 { return r.Metrics.CachedTokens }).InDetail(),
		retractionsField(s),
		table.TextColumn("model", "model that answered", func(r *R) string { return s.ModelOf(r) }).InDetail(),
		table.TextColumn("room", "bootstrap room in hex", func(r *R) string { return s.Text(r.Room) }).InDetail(),
	}
}

// retractionsField returns the column of retractions, which is hidden if there are none.
func retractionsField(s *request.Set) table.Field[request.Request] {
	none := !slices.ContainsFunc(s.Requests, func(r request.Request) bool { return r.Metrics.Retractions > 0 })
	return table.CountColumn("retractions", "number of retractions", func(r *request.Request) int64 { return r.Metrics.Retractions }).DetailIf(none)
}

// reasonField returns the column of reasons, which is hidden if there are none.
func reasonField(s *request.Set) table.Field[request.Request] {
	none := !slices.ContainsFunc(s.Requests, func(r request.Request) bool { return r.Reason != 0 })
	return table.TextColumn("reason", "reason why it did not finish", func(r *request.Request) string { return s.Syms.Name(r.Reason) }).AtMost(48).DetailIf(none)
}

// RequestIDs returns all IDs by which r can be found.
func RequestIDs(s *request.Set, r *request.Request) []string {
	return append(s.IDs(r), s.Text(r.Room), s.TraceID(r))
}

// Find returns the requests with an ID, bootstrap room, or trace ID equal to id or, if there are none, with one that
// begins with id.
func Find(s *request.Set, id string) []int {
	if id == "" {
		return nil
	}
	var exact, begin []int
	for i := range s.AllRequests() {
		r := &s.Requests[i]
		names := RequestIDs(s, r)
		switch {
		case slices.Contains(names, id):
			exact = append(exact, i)
		case slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, id) }):
			begin = append(begin, i)
		}
	}
	if exact != nil {
		return exact
	}
	return begin
}

// NoRequests explains why reports on requests are empty.
const NoRequests = "the dumps hold no requests, but spans of other services only"

// FormatMooncake is the format of Mooncake's traces, which serving simulators read.
const FormatMooncake table.Format = "mooncake"

// A mooncakeLine is a request in a Mooncake trace. Dumps do not contain the hashes of prompt blocks, so simulators
// find no common prefixes.
type mooncakeLine struct {
	Timestamp int64   `json:"timestamp"` // ms after the first request
	Input     int64   `json:"input_length"`
	Output    int64   `json:"output_length"`
	Hashes    []int64 `json:"hash_ids"`
}

// WriteMooncake writes the requests with known lengths, sorted by arrival. left is the number of requests left out.
func WriteMooncake(w io.Writer, s *request.Set) (left int, err error) {
	arrivals := order.Sorted(len(s.Requests), func(a, b int) int { return cmp.Compare(s.Requests[a].Start, s.Requests[b].Start) })
	out := bufio.NewWriter(w)
	lines := json.NewEncoder(out)
	for _, i := range arrivals {
		r := &s.Requests[i]
		if r.Metrics.PromptTokens < 0 || r.Metrics.CompletionTokens < 0 {
			left++
			continue
		}
		x := mooncakeLine{Timestamp: int64(r.Start-s.Requests[arrivals[0]].Start) / 1e6, Input: r.Metrics.PromptTokens, Output: r.Metrics.CompletionTokens, Hashes: []int64{}}
		if err := lines.Encode(&x); err != nil {
			return left, err
		}
	}
	return left, out.Flush()
}
