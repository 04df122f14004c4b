// Package accesslog reads what gateways log of each request that they passed on: whom they asked, what that answered, and how long it took.
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

// Format is the access log of a gateway: requests that say how long they took become requests of the servers that answered. Of others,
// only which answers were errors is counted.
//
// # What is odd
//
//   - nginx, Apache, and Traefik write a line when a request ends, with a stamp of whole seconds; Envoy and HAProxy say when it began, in ms.
//   - nginx has durations in s, Envoy and HAProxy in ms, Traefik in ms as text and in ns as JSON, Caddy in s. nginx's own format has none: whoever
//     wants them adds variables, by names (rt, urt, request_time, upstream_response_time) or without; all have three decimals. ingress-nginx has them.
//   - Where nginx asked several servers in turn, each field is a list. The last one answered.
//   - Only POST counts: health checks, metrics, and lists of models take no time.
//   - A server that streams sends the head of its answer at once: the time until that (upstream_header_time, x-envoy-upstream-service-time, Tr)
//     is not that to the first token.
//   - 499 of nginx, and DC of Envoy, mean that the client left.
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

// An answer is what a line says of a request.
type answer struct {
	start, end trace.Time // one of them; 0 is not told
	within     int64      // how exact that is, in ns
	local      bool       // it is of a wall clock without a zone
	took       int64      // ns; Unknown
	waited     int64      // in a queue of the gateway, ns; Unknown
	status     int
	method     string
	upstream   string // "" is none
	id         string
	left       bool   // the client did
	why        string // why the gateway answered itself; "" is not told
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

// answerOf reads a line of any of the layouts.
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
	gateway    string // what the gateway is called, by its file
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

// Statuses of HTTP that mean something special.
const (
	tooMany    = 429
	clientLeft = 499 // of nginx
	timedOut   = 504
)

// reason says why a request failed; "" is that it did not. What begins with "Aborted" is of the client.
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
	case a.status == timedOut && a.took%1e9 < 50e6 && a.took >= 1e9: // its limit is whole seconds
		return fmt.Sprintf("HTTP 504 after %d s", a.took/1e9) + why
	case a.status >= 400:
		return "HTTP " + strconv.Itoa(a.status) + why
	}
	return ""
}

// count counts an answer that does not say how long it took.
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

// server returns the server of an address; that of "" is the gateway.
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

// A complaint is what nginx logs of a request that it could not pass on, without what belongs to the request.
type complaint struct {
	text, upstream string
	at             trace.Time
}

// complaintOf reads "2026/08/17 23:03:20 [error] 29#29: *300 upstream timed out (110: ..) while reading .., client: ..".
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
	if len(said) > 0 && said[0] == '*' { // the number of a connection
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
		const most = 1000 // different ones
		if len(r.order) == most {
			return
		}
		x = &series.Instant{Time: at, Kind: series.Complaint, Place: r.place(c.upstream), Line: uint32(r.line)}
		r.complaints[c] = x
		r.order = append(r.order, c)
	}
	x.Count++
}
