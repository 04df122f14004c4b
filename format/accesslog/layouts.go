package accesslog

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

var (
	// common is what nginx, Apache, Traefik, and aiohttp write after the client: the stamp, the request, the
	// status, and the bytes.
	common = lazyregexp.New(`\[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [-+]\d{4})\] "([A-Z]{3,8}) [^"]*" (\d{3}) (?:\d+|-)`)
	envoy  = lazyregexp.New(`^\[(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)\] "([A-Z]{3,8}|-) [^"]*" (\d{1,3}) (\S+) `)
	// haproxy is the stamp, the frontend, the backend and the server, the durations, and the status.
	haproxy = lazyregexp.New(`\[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d\.\d{3})\] \S+ (\S+)/(\S+) -?\d+/(-?\d+)/-?\d+/-?\d+/(\+?-?\d+) (-?\d{1,3}) .*"([A-Z]{3,8}) `)

	decimals  = lazyregexp.New(`^\d+\.\d{3}$`)
	address   = lazyregexp.New(`^(?:\d{1,3}\.){3}\d{1,3}:\d{2,5}$|^\[[0-9a-f:]+\]:\d{2,5}$|^[\w.-]+:\d{4,5}$`)
	requestID = lazyregexp.New(`^(?:[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f-]{27})$`)
)

// Names of fields in custom layouts, and in JSON.
var (
	namesOfTook     = []string{"rt", "request_time", "response_time", "duration"}
	namesOfUpstream = []string{"upstream", "upstream_addr", "upstream_host", "ServiceAddr", "ServiceURL"}
	namesOfID       = []string{"request_id", "req_id", "requestID", "x_request_id"}
	namesOfStatus   = []string{"response_code", "status_code", "status", "DownstreamStatus"}
	namesOfMethod   = []string{"method", "request_method", "RequestMethod"}
	namesOfStart    = []string{"start_time", "StartUTC"}
	namesOfEnd      = []string{"time", "time_iso8601", "timestamp", "@timestamp", "ts", "time_local"}
	namesOfWhy      = []string{"response_code_details"}
)

// flags are Envoy's reasons for answering itself.
var flags = map[string]string{"UF": "the connection to the server failed", "UH": "no server is healthy", "UT": "the server took too long", "UO": "too many requests for its servers", "NR": "no route",
	"URX": "too many tries", "UC": "the server closed the connection", "LH": "its own health check failed", "UR": "the server reset the stream", "NC": "no such cluster", "SI": "the stream was idle for too long",
	"RL": "a limit of requests", "UPE": "the server's answer is no HTTP", "DT": "the request took too long"}

// clientLeftFlags are Envoy's flags for clients that left.
var clientLeftFlags = map[string]bool{"DC": true, "DPE": true, "DR": true}

// commonOf parses a line of nginx and similar servers. The text after the bytes depends on the configuration.
func commonOf(line []byte) (a answer, ok bool) {
	m := common.FindSubmatchIndex(line)
	if m == nil {
		return a, false
	}
	at, err := time.Parse("02/Jan/2006:15:04:05 -0700", string(line[m[2]:m[3]]))
	if err != nil {
		return a, false
	}
	a = answer{end: trace.Time(at.UnixNano()), within: 1e9, took: spantable.Unknown, waited: spantable.Unknown, method: string(line[m[4]:m[5]])}
	a.status, _ = strconv.Atoi(string(line[m[6]:m[7]]))
	words := wordsOf(string(line[m[1]:]))
	named := map[string]string{}
	for i, w := range words {
		if key, value, ok := strings.Cut(w, "="); ok {
			named[key] = strings.Trim(value, `"`)
		} else if key, ok := strings.CutSuffix(w, ":"); ok && i+1 < len(words) {
			named[key] = words[i+1]
		}
	}
	if took, ok := seconds(first(named, namesOfTook)); ok {
		a.took = took
	}
	a.upstream, a.id = addressIn(first(named, namesOfUpstream)), first(named, namesOfID)
	if len(named) == 0 {
		a.unnamed(words)
	}
	return a, true
}

// unnamed parses fields without names: the first one with three decimals is the duration of the request.
func (a *answer) unnamed(words []string) {
	for _, w := range words {
		switch last := lastOf(w); {
		case a.took < 0 && decimals.MatchString(w):
			a.took, _ = seconds(w)
		case address.MatchString(last):
			a.upstream = last
		case strings.HasPrefix(w, "http://") || strings.HasPrefix(w, "https://"): // from Traefik, or a referrer
			a.upstream = addressIn(w)
		case requestID.MatchString(w):
			a.id = w
		}
	}
	if n := len(words); n > 0 { // Traefik puts the duration last
		if ms, ok := strings.CutSuffix(words[n-1], "ms"); ok && a.took < 0 {
			if v, err := strconv.ParseInt(ms, 10, 40); err == nil {
				a.took = v * 1e6
			}
		}
	}
}

// wordsOf splits text at blanks outside of quotes, and removes the quotes. A list of nginx, "a, b", is one
// word.
func wordsOf(text string) (words []string) {
	for len(text) > 0 {
		if text = strings.TrimLeft(text, " "); text == "" {
			break
		}
		end := 0
		if text[0] == '"' {
			if end = strings.IndexByte(text[1:], '"') + 1; end == 0 {
				break
			}
			words, text = append(words, text[1:end]), text[end+1:]
			continue
		}
		for end < len(text) && text[end] != ' ' {
			if text[end] == '"' { // key="a, b"
				if n := strings.IndexByte(text[end+1:], '"'); n >= 0 {
					end += n + 1
				}
			}
			if end++; end+1 < len(text) && text[end-1] == ',' && text[end] == ' ' {
				end++
			}
		}
		words, text = append(words, text[:end]), text[end:]
	}
	return words
}

// lastOf returns the last element of a list of nginx, which is separated by commas and colons.
func lastOf(list string) string {
	if i := strings.LastIndex(list, ", "); i >= 0 {
		list = list[i+2:]
	}
	if i := strings.LastIndex(list, " : "); i >= 0 {
		list = list[i+3:]
	}
	return strings.TrimSpace(list)
}

// addressIn returns the host and the port of an address or a URL; "" if there is none.
func addressIn(text string) string {
	text = lastOf(text)
	if _, rest, ok := strings.Cut(text, "://"); ok {
		text, _, _ = strings.Cut(rest, "/")
	}
	if !address.MatchString(text) {
		return ""
	}
	return text
}

// seconds parses a duration in seconds as ns; for several tries of nginx, it returns the sum.
func seconds(text string) (ns int64, ok bool) {
	for _, part := range strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' || c == ':' }) {
		v, err := strconv.ParseFloat(part, 64)
		if err != nil || v < 0 || v > 1e7 {
			continue // "-"
		}
		ns, ok = ns+int64(math.Round(v*1e9)), true
	}
	return ns, ok
}

// envoyOf parses a line of Envoy's format, or of Istio's, which has details after the flags.
func envoyOf(line []byte) (a answer, ok bool) {
	m := envoy.FindSubmatchIndex(line)
	if m == nil {
		return a, false
	}
	at, err := time.Parse(time.RFC3339Nano, string(line[m[2]:m[3]]))
	if err != nil {
		return a, false
	}
	a = answer{start: trace.Time(at.UnixNano()), within: 1e6, took: spantable.Unknown, waited: spantable.Unknown, method: string(line[m[4]:m[5]])}
	a.status, _ = strconv.Atoi(string(line[m[6]:m[7]]))
	a.flagged(string(line[m[8]:m[9]]))
	words := wordsOf(string(line[m[1]:]))
	whole := func(i int) (int64, bool) {
		if i >= len(words) {
			return 0, false
		}
		n, err := strconv.ParseInt(words[i], 10, 40)
		return n, err == nil && n >= 0
	}
	for i := range words { // the bytes received, the bytes sent, the duration
		_, ok1 := whole(i)
		_, ok2 := whole(i + 1)
		ms, ok3 := whole(i + 2)
		if !ok1 || !ok2 || !ok3 {
			continue
		}
		a.took = ms * 1e6
		const id, upstream = 6, 8 // after the server's time, the addresses of clients, and their user agent
		if i+id < len(words) && words[i+id] != "-" {
			a.id = words[i+id]
		}
		if i+upstream < len(words) {
			a.upstream = addressIn(words[i+upstream])
		}
		return a, true
	}
	return a, false
}

// flagged evaluates flags of Envoy, "UF,URX".
func (a *answer) flagged(list string) {
	for _, f := range strings.Split(list, ",") {
		a.left = a.left || clientLeftFlags[f]
		if a.why == "" {
			a.why = flags[f]
		}
	}
}

// haproxyOf parses a line of HAProxy: the wait of a request for a server, and its duration, which with a "+" is
// less than the client saw.
func haproxyOf(line []byte) (a answer, ok bool) {
	m := haproxy.FindSubmatch(line)
	if m == nil {
		return a, false
	}
	at, err := time.Parse("02/Jan/2006:15:04:05.000", string(m[1]))
	took, err2 := strconv.ParseInt(strings.TrimPrefix(string(m[5]), "+"), 10, 40)
	if err != nil || err2 != nil {
		return a, false
	}
	a = answer{start: trace.Time(at.UnixNano()), within: 1e6, local: true, took: max(took, 0) * 1e6, waited: spantable.Unknown, method: string(m[7])}
	if waited, err := strconv.ParseInt(string(m[4]), 10, 40); err == nil && waited >= 0 {
		a.waited = waited * 1e6
	}
	if a.status, _ = strconv.Atoi(string(m[6])); a.status < 0 {
		a.left = true // before the response
	}
	if server := string(m[3]); server != "<NOSRV>" {
		a.upstream = string(m[2]) + "/" + server
	} else if a.status >= 500 {
		a.why = "no server"
	}
	return a, true
}

// jsonOf parses a JSON record of a gateway: Envoy, nginx, Traefik, or Caddy, by the names of its members.
func jsonOf(line []byte) (a answer, ok bool) {
	if line[0] != '{' || !bytes.Contains(line, []byte("tatus")) && !bytes.Contains(line, []byte("response_code")) {
		return a, false
	}
	members := map[string]string{}
	_, err := jsonscan.Members(line, 0, func(key, value []byte) {
		members[string(key)] = string(bytes.Trim(value, `"`))
		if string(key) == "request" && len(value) > 0 && value[0] == '{' { // of Caddy
			jsonscan.Members(value, 0, func(key, value []byte) { members[string(key)] = string(bytes.Trim(value, `"`)) })
		}
	})
	status, err2 := strconv.Atoi(first(members, namesOfStatus))
	a = answer{took: spantable.Unknown, waited: spantable.Unknown, within: 1e6, status: status, method: first(members, namesOfMethod)}
	if err != nil || err2 != nil || a.method == "" {
		return a, false
	}
	if a.start = timeOf(first(members, namesOfStart)); a.start == 0 {
		a.end = timeOf(first(members, namesOfEnd))
	}
	a.durationOf(members)
	a.upstream, a.id, a.why = addressIn(first(members, namesOfUpstream)), first(members, namesOfID), first(members, namesOfWhy)
	if a.why == "via_upstream" || strings.ContainsAny(a.why, " {") {
		a.why = ""
	}
	a.flagged(members["response_flags"])
	return a, a.start+a.end > 0
}

// durationOf parses the duration of a request, in the unit of the program that wrote it.
func (a *answer) durationOf(members map[string]string) {
	unit, text := 0.0, ""
	switch {
	case members["Duration"] != "": // Traefik
		unit, text = 1, members["Duration"]
	case members["request_time"] != "": // nginx
		unit, text = 1e9, members["request_time"]
	case members["duration"] != "" && members["logger"] != "": // Caddy
		unit, text = 1e9, members["duration"]
	default: // Envoy
		unit, text = 1e6, members["duration"]
	}
	if v, err := strconv.ParseFloat(text, 64); err == nil && v >= 0 && v*unit < 1e16 {
		a.took = int64(math.Round(v * unit))
	}
}

// timeOf parses a stamp with a zone, or a number since 1970; 0 if text is neither.
func timeOf(text string) trace.Time {
	for _, layout := range [...]string{time.RFC3339Nano, "02/Jan/2006:15:04:05 -0700"} {
		if t, err := time.Parse(layout, text); err == nil {
			return trace.Time(t.UnixNano())
		}
	}
	return trace.Time(jsonscan.UnixNano(text))
}

// first returns the first of the named members that exists.
func first(members map[string]string, names []string) string {
	for _, name := range names {
		if v := members[name]; v != "" && v != "-" {
			return v
		}
	}
	return ""
}
