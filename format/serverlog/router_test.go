package serverlog

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

func read(text string) (*series.Set, error) {
	diags := &trace.Diags{}
	set := series.New(trace.NewSymbols(), diags)
	in := &format.Input{Name: "router", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	_, err := Router.Index(in, &format.Options{Syms: set.Syms, Diags: diags, Series: set})
	set.Finish(series.Known{})
	return set, err
}

// described are the instants of a log, a line each, and its requests that failed.
func described(set *series.Set) string {
	var b strings.Builder
	for i := range set.Instants {
		x := &set.Instants[i]
		fmt.Fprintf(&b, "%s %s %s %s\n", time.Unix(0, int64(x.Time)).UTC().Format("15:04:05.000"), set.Servers[set.Places[x.Place].Server].Name, x.Kind, set.Syms.Name(x.Text))
	}
	for i := range set.List {
		fmt.Fprintf(&b, "%d failed requests\n", set.N(i))
	}
	return b.String()
}

const (
	of2025 = `2025-06-15 14:02:10  WARN sglang_router_rs::router: src/router.rs:423: Removing failed worker: http://10.0.0.1:30000
2025-06-15 14:02:10  INFO sglang_router_rs::router: src/router.rs:846: Removed worker: http://10.0.0.1:30000
2025-06-15 14:02:10  INFO sglang_router_rs::router: src/router.rs:860: Removed worker from tree and cleaned up queues: http://10.0.0.1:30000
`
	ofRay = `(RolloutManager pid=519445) 2025-11-08 10:07:09 ERROR sglang_router_rs::response: src/middleware.rs:256: request failed with server error
(RolloutManager pid=519445) Error: Server error '503 Service Unavailable' for url 'http://10.78.210.151:4674/generate'
`
	of2026 = `2026-02-26 13:00:06  INFO smg::server: src/server.rs:794: Starting router on 0.0.0.0:8000 | mode: PrefillDecode { prefill_urls: [("http://10.0.0.8:30000", Some(8998))], decode_urls: ["http://10.0.0.9:30000"] }
2026-02-26 14:02:11.250  WARN smg::core::worker: src/core/worker.rs:978: Worker http://10.0.0.9:30000@3 health check failed: Worker error: Health check request failed for http://10.0.0.9:30000: HTTP status 503
2026-02-26 14:02:12.000 ERROR http_request{method=POST uri=/v1/chat/completions version=HTTP/1.1 request_id="chatcmpl-ab" status_code=500 latency=400211 module="smg"}: smg::response: src/middleware.rs:353: request failed with server error
2026-02-26 14:02:12.100 ERROR smg::routers::http::pd_router: src/routers/http/pd_router.rs:530: Decode request failed decode_url=http://10.0.0.9:30000 error=error sending request: connection refused
2026-02-26 14:02:13.000  INFO smg::core::circuit_breaker: src/core/circuit_breaker.rs:290: Circuit breaker state transition: closed -> open
2026-02-26 14:05:40.000  INFO smg::core::worker: src/core/worker.rs:973: Worker http://10.0.0.9:30000 is now healthy
`
	asJSON = `{"timestamp":"2026-07-26 14:02:11.250","level":"WARN","message":"Health probe failed","worker_url":"http://10.0.0.9:30000","error":"operation timed out","target":"smg::worker::manager","filename":"model_gateway/src/worker/manager.rs","line_number":467}
{"timestamp":"2026-07-26 14:02:12.000","level":"ERROR","message":"request failed with server error","target":"smg::response","filename":"model_gateway/src/middleware/logging.rs","line_number":94,"span":{"method":"POST","uri":"/generate","version":"HTTP/1.1","request_id":"gnt-1","status_code":503,"latency":2211,"name":"http_request"},"spans":[]}
{"timestamp":"2026-07-26 14:02:13.000","level":"WARN","fields":{"message":"Removing failed worker from registry","worker_id":"a1","worker_url":"http://10.0.0.9:30000","expected_revision":3},"target":"smg::worker::manager"}
`
)

// The layouts are those of tracing-subscriber, with the messages of the sources of each time.
func TestRouterLayouts(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"2025": {of2025, "14:02:10.000 10.0.0.1:30000 unrouted is removed from the router as failed\n14:02:10.000 10.0.0.1:30000 unrouted is removed from the router\n"},
		"Ray":  {ofRay, "1 failed requests\n"},
		"2026": {of2026, `13:00:06.000 router start starts
14:02:11.250 10.0.0.9:30000 unrouted fails a health check of the router: HTTP status 503
14:02:12.100 10.0.0.9:30000 unrouted does not take requests of the router: connection refused
14:02:13.000 router refusal opens a circuit breaker: a server that the log does not name gets nothing for a while
14:05:40.000 10.0.0.9:30000 routed is healthy again for the router
1 failed requests
`},
		"JSON": {asJSON, `14:02:11.250 10.0.0.9:30000 unrouted fails a health check of the router: timed out
14:02:13.000 10.0.0.9:30000 unrouted is removed from the router as failed
1 failed requests
`},
	} {
		if !sniffRouter([]byte(c.text)) {
			t.Errorf("%s: not recognized", name)
		}
		set, err := read(c.text)
		if got := described(set); err != nil || got != c.want {
			t.Errorf("%s: %v\n%swant\n%s", name, err, got, c.want)
		}
		if z := &set.Sources[0].Zone; z.Name() != "UTC" {
			t.Errorf("%s: zone %s", name, z.Name())
		}
	}
}

// What stands around lines changes nothing.
func TestRouterWrappings(t *testing.T) {
	bare, err := read(of2026)
	if err != nil {
		t.Fatal(err)
	}
	for _, before := range []string{"2026-02-26T14:03:05.123456789Z ", "[pod/router-0/main] ", "[pod/router-0/main] 2026-02-26T14:03:05.1Z ", "2026-02-26T14:03:05.1Z stderr F ", "router-0 main ", "2026-02-26T14:03:05.123Z\t"} {
		text := before + strings.ReplaceAll(strings.TrimSuffix(of2026, "\n"), "\n", "\n"+before)
		if !sniffRouter([]byte(text)) {
			t.Errorf("%q: not recognized", before)
		}
		set, err := read(text)
		if got, want := described(set), described(bare); err != nil || got != want {
			t.Errorf("%q: %v\n%swant\n%s", before, err, got, want)
		}
	}
}

// Prompts and keys in answers of servers, in spans, and in lines that nobody knows are not kept.
func TestRouterCanaries(t *testing.T) {
	const canary = "the secret recipe, sk-abcdefghijklmnopqrstuvwx"
	for _, text := range []string{of2026, asJSON} {
		for _, at := range []string{"error sending request", "operation timed out", "HTTP status 503", "chatcmpl-ab", "gnt-1", "closed -> open", "a1", "PrefillDecode"} {
			set, err := read(strings.ReplaceAll(text, at, at+" "+canary) + "2026-02-26 14:02:12.000  WARN smg::x: src/x.rs:1: " + canary + "\n")
			if err != nil {
				t.Fatal(err)
			}
			for i := range set.Syms.Len() {
				if strings.Contains(set.Syms.Name(trace.Sym(i)), "recipe") {
					t.Errorf("%s: %s", at, set.Syms.Name(trace.Sym(i)))
				}
			}
		}
	}
}

func TestRouterMutants(t *testing.T) {
	s := testinput.Subject{Data: []byte(strings.Repeat(of2026+asJSON+of2025, 3)), Other: []byte(ofRay + asJSON)}
	for i, b := range s.Data {
		if b == '\n' {
			s.Cuts = append(s.Cuts, i+1)
		}
	}
	s.OtherCuts = []int{len(ofRay)}
	for seed := range testinput.Seeds(100) {
		m := s.Mutate(seed)
		if _, err := read(string(m.Data)); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}

func BenchmarkReadRouter(b *testing.B) {
	text := strings.Repeat(of2026+"2026-02-26 14:02:12.000  INFO smg::response: src/middleware.rs:360: finished processing request\n", 2000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := read(text); err != nil {
			b.Fatal(err)
		}
	}
}
