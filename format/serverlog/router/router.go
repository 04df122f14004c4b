// Package router reads logs of the router in front of servers: which servers it took out and put back, and which requests
// failed. Each such line becomes an instant of [series.Set].
package router

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/format/serverlog/errortext"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Format is a log of SGLang's router: sgl-router, which became sgl-model-gateway (smg), or of the frontend of Dynamo. It
// reports when the router took servers out and put them back, and which requests failed.
//
// # What is odd
//
//   - Stamps have no zone and are UTC, unlike the local ones of SGLang's servers.
//   - A log is text, with the fields of a request in braces before the name of the module, or JSON
//     (--log-json), where they are in "span".
//   - A failed health check is only logged while the router still considers the server healthy. Later failures
//     are not, until "is now healthy".
//   - The message about an opened circuit breaker does not name the server.
//   - The name of the module was sglang_router_rs until 2025-11, then sgl_model_gateway, then smg.
//   - Until 2025-06, lines begin with "[Router (Rust)]", and their stamps are local.
//   - Dynamo identifies a worker by a number, and never says where it runs. Its frontend logs each finished request, with the response
//     in fields of a span. We don't read what its workers log about requests.
var Format = &format.Format{
	Name:     "router log",
	Noun:     "router log",
	Doc:      "what SGLang's router (sgl-router, sgl-model-gateway, smg) or Dynamo's frontend says of servers that it took out, and of requests that failed; of Dynamo, also what each request took",
	For:      "'sgtrace report'",
	Sniff:    sniff,
	Index:    index,
	Requests: true,
	Series:   true,
	Text:     true,
}

// signOf matches a line of the router, as text or as JSON. Few runs need it, and compiling it takes half a millisecond.
var signOf = lazyregexp.New(`20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?Z? +(?:TRACE|DEBUG|INFO|WARN|ERROR) .{0,400}?\b` + heads + `[\w:-]*: |"target": ?"` + heads + `(?:::|")|"span_name": ?"http_request"|` + oldHead + `(?:Rust|Python)\)\] 20\d\d-`)

const (
	modules = `(?:sglang_router_rs|sgl_model_gateway|smg|dynamo_llm|dynamo_runtime)`
	heads   = `(?:sglang_router_rs|sgl_model_gateway|smg|` + logline.DynamoFrontend + `)`
	oldHead = `\[Router \(`
)

// signWords are words; each log of a router contains one.
var signWords = []string{"smg", "sgl_model_gateway", "sglang_router_rs", "[Router (", "dynamo_llm::", `"http_request"`}

// sniff looks for the words before it tries the expression, which takes longer. In JSON, the first line must be a whole log
// record: traces of the router contain the same names.
func sniff(head []byte) bool {
	if !slices.ContainsFunc(signWords, func(word string) bool { return bytes.Contains(head, []byte(word)) }) {
		return false
	}
	if text := bytes.TrimLeft(head, "\xef\xbb\xbf \t\r\n"); len(text) > 0 && (text[0] == '{' || text[0] == '[' && bytes.HasPrefix(bytes.TrimLeft(text[1:], " \r\n"), []byte("{"))) {
		line, _, whole := bytes.Cut(text, []byte("\n"))
		record := bytes.HasPrefix(line, []byte(`{"log":"`)) || bytes.Contains(line, []byte(`"level"`)) && (bytes.Contains(line, []byte(`"timestamp"`)) || bytes.Contains(line, []byte(`"time"`)))
		if !record || !whole && !json.Valid(line) {
			return false
		}
	}
	return signOf.Match(head)
}

// index reads a log.
func index(in *format.Input, opt *format.Options) (*format.Source, error) {
	content, err := in.Open()
	if err != nil {
		return nil, err
	}
	r := newReader(in.Name, opt)
	size, err := logline.Read(content, in.Name, opt.Diags, func(b []byte, n int64) {
		r.f.Line(n)
		r.line = n
		r.take(b)
	})
	r.tellAwaited()
	r.complaints.Tell(r.f)
	src := r.f.Source()
	src.Bytes, src.Lines, src.Read, src.Other, src.FirstOther = size, int(r.line), r.read, r.other, r.first
	return &format.Source{}, err
}

// A reader reads one log.
type reader struct {
	f          *series.Filler
	around     *logline.Unwrapper
	stamps     logline.Stamper
	name       string
	line       int64
	read       int // lines that were used
	other      int // warnings and errors of unknown kinds
	first      int // line of the first of these; 0 is none
	places     map[string]int32
	errors     map[int32]int32 // series of failed requests, by place
	rows       *spantable.RequestFiller
	pending    []byte
	now        trace.Time         // time of the last line with a stamp
	awaited    map[int32]*awaited // servers that were not healthy yet, by place
	complaints errortext.Complaints
}

func newReader(name string, opt *format.Options) *reader {
	f := opt.Series.Fill(name, "router log")
	zone := &f.Source().Zone
	zone.By = "stamps of the router, which are UTC"
	return &reader{f: f, rows: opt.Records.Fill(f), around: logline.New(), name: name, places: map[string]int32{}, errors: map[int32]int32{}, awaited: map[int32]*awaited{}, complaints: errortext.NewComplaints(opt.Series)}
}

// place returns the place of the router, or of a server with a URL.
func (r *reader) place(of []byte, role string) int32 {
	key := role + " " + string(of)
	place, ok := r.places[key]
	if !ok {
		server := series.Server{Name: string(of), Role: role}
		place = r.f.Place(series.Place{Server: r.f.Server(server), Rank: trace.NoRank, GPU: series.NoGPU})
		if len(r.places) < 1<<14 {
			r.places[key] = place
		}
	}
	return place
}

// A said is one line, without its wrapping.
type said struct {
	at      trace.Time
	level   []byte
	message []byte // followed by its fields, as text
}

// take reads a line.
func (r *reader) take(b []byte) {
	b = r.around.Bare(b)
	var x said
	ok := false
	if i := bytes.IndexByte(b, '{'); i >= 0 && bytes.Contains(b[i:min(len(b), i+600)], []byte(`"level"`)) {
		ok = r.object(b[i:], &x)
	} else {
		ok = r.text(b, &x) || r.old(b, &x)
	}
	if !ok {
		r.unknown(b)
		return
	}
	r.f.Saw(x.at)
	r.now = x.at
	r.says(&x)
}

// An awaited is a server that a router waits for when it starts.
type awaited struct {
	first       trace.Time
	line, times int
	why         string
}

// await records that the server in a line is not healthy yet.
func (r *reader) await(x *said, s *sign) {
	of := url(x.message)
	if of == nil {
		return
	}
	a := order.Memo(r.awaited, r.place(of, ""), func() *awaited {
		return &awaited{first: x.at, line: int(r.line), why: errortext.Reason(x.message, s.text)}
	})
	a.times++
}

// tellAwaited reports the servers that a router still waited for at the end of its log.
func (r *reader) tellAwaited() {
	for _, place := range slices.Sorted(maps.Keys(r.awaited)) {
		a := r.awaited[place]
		text := "is not healthy for the router, which waits for it since its start"
		if a.why != "" {
			text += ": " + a.why
		}
		r.f.Line(int64(a.line))
		r.f.Instant(series.Instant{Time: a.first, Place: place, Kind: series.Unrouted, Line: uint32(a.line), Count: int32(a.times)}, text)
	}
}

// strange counts a line about unknown trouble.
func (r *reader) strange() {
	if r.other++; r.first == 0 {
		r.first = int(r.line)
	}
}

// unknown counts any other line.
func (r *reader) unknown(b []byte) {
	if text, kind := errortext.Panic(b); text != "" {
		r.f.Instant(series.Instant{Place: r.router(), Kind: kind, Line: uint32(r.line), Count: 1, Time: r.now}, text)
		r.read++
	}
}
