// Package accesslog reads the access logs of gateways: for each request, the server that was asked, its answer,
// and the duration.
package accesslog

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Format is the access log of a gateway. Requests with a duration become requests of the servers that answered; of others, only errors
// are counted.
//
// # What is odd
//
//   - nginx, Apache, and Traefik write a line when a request ends, with a stamp in whole seconds; Envoy and HAProxy have its start, in ms.
//   - nginx has durations in s, Envoy and HAProxy in ms, Traefik in ms as text and in ns as JSON, Caddy in s. nginx's default format has none:
//     people add variables, with names (rt, urt, request_time, upstream_response_time) or without; all have three decimals. ingress-nginx has them.
//   - If nginx asked several servers in turn, each field is a list. The last one answered.
//   - Only POST counts: health checks, metrics, and lists of models take no time.
//   - A server that streams sends its response headers at once: the time until then (upstream_header_time, x-envoy-upstream-service-time, Tr)
//     is not the time to the first token.
//   - nginx's 499, and Envoy's DC, mean that the client left.
//   - HAProxy's stamps have no zone.
var Format = &format.Format{
	Name:     "access log",
	Noun:     "access log",
	Doc:      "access logs of nginx, ingress-nginx, Envoy, Istio, Traefik, HAProxy, and Caddy, as text or JSON, and nginx's log of errors",
	For:      "'sgtrace report'",
	Sniff:    sniff,
	Index:    index,
	Requests: true,
	Series:   true,
	Text:     true,
}

// An answer is the information in a line about a request.
type answer struct {
	start, end trace.Time // one of them is set; 0 is unknown
	within     int64      // precision of that time, in ns
	local      bool       // the time is local, without a zone
	took       int64      // ns, or Unknown
	waited     int64      // in a queue of the gateway, ns, or Unknown
	status     int
	method     string
	upstream   string // "" is none
	id         string
	left       bool   // the client left
	why        string // why the gateway answered itself; "" is unknown
}

func sniff(head []byte) bool {
	const most = 30
	around := logline.New()
	lines, known := 0, 0
	for lines < most && len(head) > 0 {
		var line []byte
		line, head, _ = bytes.Cut(head, []byte("\n"))
		if line = bytes.TrimSpace(around.Rest(around.Bare(line))); len(line) == 0 {
			continue
		}
		if lines++; len(head) == 0 && lines > 1 && known == lines-1 {
			break // it may be cut off
		}
		if _, ok := answerOf(line); ok {
			known++
		} else if _, ok := complaintOf(line); ok {
			known++
		}
	}
	return known > 0 && 2*known >= lines
}

// answerOf parses a line in any of the layouts.
func answerOf(line []byte) (a answer, ok bool) {
	const shortest = 30
	if len(line) < shortest {
		return a, false
	}
	for _, layout := range [...]func([]byte) (answer, bool){jsonOf, envoyOf, haproxyOf, commonOf} {
		if a, ok = layout(line); ok {
			return a, true
		}
	}
	return a, false
}

// A reader reads one file.
type reader struct {
	f          *series.Filler
	rows       *spantable.RequestFiller
	gateway    string // name of the gateway, from its file
	line       int64
	read       int
	servers    map[string]int32
	complaints map[complaint]*series.Instant
	order      []complaint
}

func index(in *format.Input, opt *format.Options) (*format.Source, error) {
	content, err := in.Open()
	if err != nil {
		return nil, err
	}
	r := &reader{f: opt.Series.Fill(in.Name, "access log"), gateway: in.Name, servers: map[string]int32{}, complaints: map[complaint]*series.Instant{}}
	r.rows = opt.Records.Fill(r.f)
	around := logline.New()
	bytesRead, err := logline.Read(content, in.Name, opt.Diags, func(b []byte, n int64) {
		r.line = n
		r.f.Line(n)
		if b = bytes.TrimSpace(around.Rest(around.Bare(b))); len(b) > 0 {
			r.take(b)
		}
	})
	for _, c := range r.order {
		x := r.complaints[c]
		r.f.Instant(*x, c.text)
	}
	src := r.f.Source()
	src.Bytes, src.Lines, src.Read = bytesRead, int(r.line), r.read
	return &format.Source{}, err
}

func (r *reader) take(b []byte) {
	if c, ok := complaintOf(b); ok {
		r.complain(c)
		return
	}
	a, ok := answerOf(b)
	if !ok {
		return
	}
	r.read++
	src := r.f.Source()
	src.Zone.Local = src.Zone.Local || a.local
	if !a.local && src.Zone.By == "" {
		src.Zone.By = "stamps with a zone"
	}
	r.f.Saw(cmp.Or(a.end, a.start))
	if a.method != "POST" {
		return
	}
	if a.took < 0 {
		r.count(&a)
		return
	}
	row := spantable.NewRequestRecord()
	row.Who, row.Role, row.Fronted, row.Line, row.Local = spantable.Server, spantable.Unified, true, uint32(r.line), a.local
	row.E2E = a.took
	if row.Start, row.End = a.start, a.end; a.end == 0 {
		row.End = a.start + trace.Time(a.took)
	} else {
		row.Start = a.end - trace.Time(a.took)
	}
	if a.waited > 0 && a.waited <= a.took {
		row.Phases[spantable.Queue] = spantable.Phase{From: row.Start, To: row.Start + trace.Time(a.waited)}
	}
	row.Server = r.server(a.upstream)
	if why := a.reason(); why != "" {
		row.Reason = r.rows.Symbols().Intern(why)
	}
	id := a.id
	if id == "" {
		id = "line " + strconv.FormatInt(r.line, 10)
	}
	row.ID = r.rows.Text([]byte(id))
	r.rows.Add(row)
}

// HTTP statuses with a special meaning.
const (
	tooMany    = 429
	clientLeft = 499 // of nginx
	timedOut   = 504
)

// reason returns why a request failed; "" if it did not. Reasons that begin with "Aborted" are the client's.
func (a *answer) reason() string {
	why := ""
	if a.why != "" {
		why = ": " + a.why
	}
	switch {
	case a.left || a.status == clientLeft:
		return "Aborted: the client left" + why
	case a.status == tooMany:
		return "HTTP 429 (too many requests)" + why
	case a.status == timedOut && a.took%1e9 < 50e6 && a.took >= 1e9: // the timeout is whole seconds
		return fmt.Sprintf("HTTP 504 after %d s", a.took/1e9) + why
	case a.status >= 400:
		return "HTTP " + strconv.Itoa(a.status) + why
	}
	return ""
}

// count counts an answer without a duration.
func (r *reader) count(a *answer) {
	metric := series.ServerErrors
	switch {
	case a.status == tooMany:
		metric = series.Refused
	case a.status < 500:
		return
	}
	r.f.Within(a.within)
	r.f.Add(r.f.Series(metric, r.place(a.upstream)), cmp.Or(a.end, a.start), 1)
}

// server returns the server with an address; "" is the gateway itself.
func (r *reader) server(address string) int32 {
	return order.Memo(r.servers, address, func() int32 {
		if address == "" {
			return r.f.Server(series.Server{Name: strings.TrimSuffix(r.gateway, ".log")})
		}
		host, _, _ := strings.Cut(address, ":")
		return r.f.Server(series.Server{Host: host, Name: address})
	})
}

func (r *reader) place(address string) int32 {
	return r.f.Place(series.Place{Server: r.server(address), Rank: trace.NoRank, GPU: series.NoGPU})
}

// A complaint is nginx's message about a request that it could not pass on, without the details of the request.
type complaint struct {
	text, upstream string
	at             trace.Time
}

// complaintOf parses "2026/08/17 23:03:20 [error] 29#29: *300 upstream timed out (110: ..) while reading ..,
// client: ..".
func complaintOf(line []byte) (c complaint, ok bool) {
	const stamp = len("2026/08/17 23:03:20")
	if len(line) < stamp+3 || line[4] != '/' || line[7] != '/' || line[stamp+1] != '[' {
		return c, false
	}
	clock, ok1 := logline.ClockOf(line[11:])
	year, ok2 := logline.Digits(line, 4)
	month, ok3 := logline.Digits(line[5:], 2)
	day, ok4 := logline.Digits(line[8:], 2)
	at, ok5 := logline.At(year, month, day, clock)
	level, rest, _ := bytes.Cut(line[stamp+2:], []byte("] "))
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !slices.Contains([]string{"error", "crit", "alert", "emerg", "warn", "notice"}, string(level)) {
		return c, false
	}
	_, said, _ := bytes.Cut(rest, []byte(": "))
	if len(said) > 0 && said[0] == '*' { // number of a connection
		_, said, _ = bytes.Cut(said, []byte(" "))
	}
	said, about, _ := bytes.Cut(said, []byte(", client: "))
	_, to, _ := bytes.Cut(about, []byte(`upstream: "`))
	to, _, _ = bytes.Cut(to, []byte(`"`))
	if c.at, c.upstream = at, addressIn(string(to)); string(level) != "warn" && string(level) != "notice" {
		c.text = string(said)
	}
	return c, true
}

func (r *reader) complain(c complaint) {
	r.f.Source().Zone.Local = true
	r.f.Saw(c.at)
	if c.text == "" {
		return
	}
	r.read++
	at := c.at
	c.at = 0
	x := r.complaints[c]
	if x == nil {
		const most = 1000 // distinct ones
		if len(r.order) == most {
			return
		}
		x = &series.Instant{Time: at, Kind: series.Complaint, Place: r.place(c.upstream), Line: uint32(r.line)}
		r.complaints[c] = x
		r.order = append(r.order, c)
	}
	x.Count++
}
