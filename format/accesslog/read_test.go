package accesslog

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// TestLayouts reads the same request, which took 2.1 s and ended at 22:53:22, in the layouts of several gateways.
func TestLayouts(t *testing.T) {
	const post, id = `"POST /v1/chat/completions HTTP/1.1"`, "0123456789abcdef0123456789abcdef"
	const clf = `10.1.1.1 - - [17/Aug/2026:22:53:22 +0000] `
	for name, tt := range map[string]struct{ line, want string }{
		"nginx":         {clf + post + ` 200 4000 "-" "python" rt=2.100 uct="0.001" uht="0.200" urt="2.099" upstream="10.0.0.5:8000"`, "22:53:19.9 2.1s 200 10.0.0.5:8000"},
		"unnamed":       {clf + post + ` 200 4000 "-" "python" 2.100 2.099 10.0.0.5:8000`, "22:53:19.9 2.1s 200 10.0.0.5:8000"},
		"ingress-nginx": {clf + post + ` 200 4000 "http://a.example/x" "curl" 1233 2.100 [llm-vllm-8000] [] 10.0.0.5:8000 4000 2.100 200 ` + id, "22:53:19.9 2.1s 200 10.0.0.5:8000 " + id},
		"tried twice":   {clf + post + ` 502 0 "-" "curl" 1233 2.100 [llm-vllm-8000] [] 10.0.0.6:8000, 10.0.0.5:8000 0, 0 1.000, 1.100 502, 502 ` + id, "22:53:19.9 2.1s 502 10.0.0.5:8000 " + id},
		"combined":      {clf + post + ` 502 157 "-" "python-httpx/0.28"`, "22:53:22 none 502"},
		"traefik":       {clf + post + ` 200 4000 "-" "-" 5 "llm@docker" "http://10.0.0.5:8000" 2100ms`, "22:53:19.9 2.1s 200 10.0.0.5:8000"},
		"envoy": {`[2026-08-17T22:53:19.900Z] ` + post + ` 503 UF 12 91 2100 - "10.1.1.1" "python" "` + id + `" "llm" "10.0.0.5:8000"`,
			"22:53:19.9 2.1s 503 10.0.0.5:8000 " + id + " the connection to the server failed"},
		"istio": {`[2026-08-17T22:53:19.900Z] ` + post + ` 200 - via_upstream - "-" 12 4000 2100 5 "10.1.1.1" "python" "` + id + `" "llm" "10.0.0.5:8000" outbound|8000||vllm.svc 10.0.0.1:55 10.0.0.1:80 10.1.1.1:3333 - default`,
			"22:53:19.9 2.1s 200 10.0.0.5:8000 " + id},
		"no server": {`[2026-08-17T22:53:19.900Z] ` + post + ` 503 UH no_healthy_upstream - "-" 12 19 0 - "10.1.1.1" "python" "` + id + `" "llm" "-" outbound|8000||vllm.svc - 10.0.0.1:80 10.1.1.1:3333 - default`,
			"22:53:19.9 0s 503 " + id + " no server is healthy"},
		"left": {`[2026-08-17T22:53:19.900Z] ` + post + ` 0 DC downstream_remote_disconnect - "-" 12 0 2100 - "10.1.1.1" "python" "` + id + `" "llm" "10.0.0.5:8000" outbound|8000||vllm.svc - - - - default`,
			"22:53:19.9 2.1s 0 10.0.0.5:8000 " + id + " left"},
		"haproxy": {`Aug 17 22:53:22 lb haproxy[14]: 10.0.1.2:33317 [17/Aug/2026:22:53:19.900] fe llm/vllm-0 10/100/30/69/2100 200 2750 - - ---- 1/1/1/1/0 0/0 ` + post,
			"22:53:19.9 2.1s 200 llm/vllm-0 waited 100ms"},
		"Envoy's JSON": {`{"start_time":"2026-08-17T22:53:19.900Z","method":"POST","path":"/v1","response_code":503,"response_flags":"UC","duration":2100,"upstream_host":"10.0.0.5:8000","request_id":"` + id + `"}`,
			"22:53:19.9 2.1s 503 10.0.0.5:8000 " + id + " the server closed the connection"},
		"Traefik's JSON": {`{"DownstreamStatus":502,"Duration":2100000000,"RequestMethod":"POST","ServiceAddr":"10.0.0.5:8000","StartUTC":"2026-08-17T22:53:19.9Z","time":"2026-08-17T22:53:22Z"}`,
			"22:53:19.9 2.1s 502 10.0.0.5:8000"},
		"Caddy's JSON": {`{"level":"info","ts":1787007202.0,"logger":"http.log.access","msg":"handled request","request":{"method":"POST","uri":"/v1"},"duration":2.1,"status":200}`, "22:53:19.9 2.1s 200"},
		"nginx's JSON": {`{"time_iso8601":"2026-08-17T22:53:22+00:00","request_method":"POST","status":"200","request_time":"2.100","upstream_addr":"10.0.0.5:8000"}`, "22:53:19.9 2.1s 200 10.0.0.5:8000"},
	} {
		a, ok := answerOf([]byte(tt.line))
		at, took := a.start, "none"
		if a.took >= 0 {
			took = time.Duration(a.took).String()
			if at == 0 {
				at = a.end - trace.Time(a.took)
			}
		} else {
			at = a.end
		}
		words := []string{time.Unix(0, int64(at)).UTC().Format("15:04:05.999"), took, fmt.Sprint(a.status)}
		for _, more := range []string{a.upstream, a.id, a.why} {
			if more != "" {
				words = append(words, more)
			}
		}
		if a.left {
			words = append(words, "left")
		}
		if a.waited > 0 {
			words = append(words, "waited", time.Duration(a.waited).String())
		}
		if got := strings.Join(words, " "); !ok || got != tt.want || a.method != "POST" {
			t.Errorf("%s: %v %q, not %q", name, ok, got, tt.want)
		}
		if !sniff([]byte(tt.line + "\n" + tt.line + "\n")) {
			t.Errorf("%s is not recognized", name)
		}
	}
	for _, line := range []string{`INFO:     10.0.0.1:5000 - "POST /generate HTTP/1.1" 200 OK`, `{"status":"ok","method":"POST"}`, "hello",
		`2026-05-11 09:00:00,300 ERROR vllm: request failed with status 502`} {
		if sniff([]byte(line + "\n")) {
			t.Errorf("%s is taken for an access log", line)
		}
	}
}

// readLog reads a log, and returns its requests and series.
func readLog(t testing.TB, text string) (*spantable.RequestRecords, *series.Set) {
	diags := &trace.Diags{}
	set := series.New(trace.NewSymbols(), diags)
	records := spantable.NewRequestRecords(set)
	in := &format.Input{Name: "access.log", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	if _, err := Format.Index(in, &format.Options{Series: set, Records: records, Diags: diags}); err != nil {
		t.Fatal(err)
	}
	set.Finish(series.Known{})
	return records, set
}

// TestRequests: a line with a duration becomes a request, unless it is a health check. A failed line without
// one is counted. Errors in nginx's log become complaints about their upstream server; repetitions are counted.
func TestRequests(t *testing.T) {
	const clf = `10.1.1.1 - - [17/Aug/2026:22:53:22 +0000] "`
	records, set := readLog(t, clf+`POST /v1/completions HTTP/1.1" 200 4000 "-" "x" 2.100 2.100 10.0.0.5:8000`+"\n"+
		clf+`GET /health HTTP/1.1" 200 4000 "-" "x" 0.001 0.001 10.0.0.5:8000`+"\n"+
		clf+`POST /v1/completions HTTP/1.1" 502 157 "-" "x"`+"\n"+
		strings.Repeat(`2026/08/17 22:53:22 [error] 29#29: *300 upstream timed out (110: Connection timed out) while reading response header from upstream, client: 10.1.1.1, server: llm, request: "POST /secret HTTP/1.1", upstream: "http://10.0.0.5:8000/v1/secret", host: "llm"`+"\n", 3))
	if records.Len() != 1 || len(set.Instants) != 1 || len(set.List) != 1 || set.Metric(set.List[0].Metric).Name != "server errors" {
		t.Fatalf("%d requests, %d instants, %d series", records.Len(), len(set.Instants), len(set.List))
	}
	x := set.Instants[0]
	if text := set.Syms.Name(x.Text); x.Count != 3 || text != "upstream timed out (110: Connection timed out) while reading response header from upstream" || set.Servers[set.Places[x.Place].Server].Name != "10.0.0.5:8000" {
		t.Errorf("%d times %q of %v", x.Count, text, set.Servers[set.Places[x.Place].Server])
	}
}

// FuzzIndex checks that no input causes a panic.
func FuzzIndex(f *testing.F) {
	f.Add(`10.1.1.1 - - [17/Aug/2026:22:53:22 +0000] "POST / HTTP/1.1" 200 4000 "-" "x" 2.100 a="b, c" 10.0.0.5:8000`)
	f.Add(`[2026-08-17T22:53:19.900Z] "POST / HTTP/1.1" 503 UF 12 91 2100 - "a" "b" "c" "d" "10.0.0.5:8000"`)
	f.Fuzz(func(t *testing.T, text string) {
		sniff([]byte(text))
		readLog(t, text)
	})
}
