package router

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/serverlog"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

func read(text string) (*series.Set, error) {
	diags := &trace.Diags{}
	set := series.New(trace.NewSymbols(), diags)
	in := &format.Input{Name: "router", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	_, err := Format.Index(in, &format.Options{Syms: set.Syms, Diags: diags, Series: set, Records: spantable.NewRequestRecords(set)})
	set.Finish(series.Known{})
	return set, err
}

// described lists the events in a log, one per line, and its failed requests.
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
	ofDynamo = `2026-06-16T14:23:12.477384Z  WARN dynamo_llm::kv_router::indexer::jetstream: DISCOVERY: Generate endpoint instance removed, removing worker 77233180278
2026-06-16T14:23:13.500000Z ERROR chat_completions: dynamo_llm::http::service::openai: Internal server error: Failed to generate completions: no instances found for endpoint "instances/dynamo/backend/generate"
│ 2026-06-16T14:23:14.500000Z ERROR chat_completions: dynamo_llm::http::service::openai: Internal server error: Failed to generate completions: no responders: no responders    │
`
	beforeTracing = `[Router (Rust)] 2025-03-08 02:33:09 - INFO - Worker http://10.0.0.1:31000 health check is pending with error: error sending request for url (http://10.0.0.1:31000/health)
[Router (Rust)] 2025-03-08 02:40:09 - INFO - All workers are healthy
[Router (Rust)] 2025-03-08 02:41:09 - WARN - Generate request to http://10.0.0.1:31000 failed (attempt 1/3)
[Router (Rust)] 2025-03-08 02:41:10 - WARN - Removing failed worker: http://10.0.0.1:31000
`
)

// Until 2025-06, the router's timestamps are in local time.
func TestBeforeTracing(t *testing.T) {
	set, err := read(beforeTracing)
	if !sniff([]byte(beforeTracing)) || err != nil || !set.Sources[0].Zone.Local {
		t.Errorf("%v, not recognized or not local", err)
	}
	if got, want := described(set), `02:41:09.000 10.0.0.1:31000 unrouted does not take requests of the router
02:41:10.000 10.0.0.1:31000 unrouted is removed from the router as failed
`; got != want {
		t.Errorf("%swant\n%s", got, want)
	}
}

// A server that the router still waits for at the end of its log is reported once, with the first time. Once all servers are healthy, none
// is reported.
func TestRouterAwaits(t *testing.T) {
	const waits = `[Router (Rust)] 2025-03-08 02:33:09 - INFO - Worker http://10.0.0.1:31000 health check is pending with error: connection refused
[Router (Rust)] 2025-03-08 02:33:09 - INFO - Worker http://10.0.0.2:31000 health check is pending with error: error sending request
[Router (Rust)] 2025-03-08 02:33:19 - INFO - Worker http://10.0.0.1:31000 health check is pending with error: connection refused
`
	for text, want := range map[string]string{
		waits: `02:33:09.000 10.0.0.1:31000 unrouted is not healthy for the router, which waits for it since its start: connection refused
02:33:09.000 10.0.0.2:31000 unrouted is not healthy for the router, which waits for it since its start
`,
		waits + "[Router (Rust)] 2025-03-08 02:33:29 - INFO - All workers are healthy\n": "",
	} {
		if set, err := read(text); err != nil || described(set) != want {
			t.Errorf("%v\n%swant\n%s", err, described(set), want)
		}
	}
}

// A Dynamo worker also has lines of dynamo_llm, plus batches: its log is that of a server.
func TestWorkersOfDynamo(t *testing.T) {
	const text = `2026-06-12T17:28:04.143858Z  INFO dynamo_llm::hub: download completed
2026-06-12T17:28:04.242899Z  INFO _core: Registered base model
2026-06-12T17:28:05.000000Z  INFO metrics_reporter.report_decode_stats: Decode batch, #running-req: 1, #token: 9, token usage: 0.01, cuda graph: True, gen throughput (token/s): 1.00, #queue-req: 0
`
	if sniff([]byte(text)) || !serverlog.Format.Sniff([]byte(text)) {
		t.Error("taken for a log of the frontend")
	}
	if serverlog.Format.Sniff([]byte(ofDynamo)) || !sniff([]byte(ofDynamo)) {
		t.Error("the log of a frontend is taken for one of a worker")
	}
}

// The layouts are those of tracing-subscriber, with the messages in the sources of each release.
func TestLayouts(t *testing.T) {
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
		"Dynamo": {ofDynamo, `14:23:12.477 worker 77233180278 unrouted is removed from the router: its registration is gone
14:23:13.500 router refusal the router has no server for a request
14:23:14.500 router refusal the router has no server for a request
`},
	} {
		if !sniff([]byte(c.text)) {
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

// Line prefixes and suffixes change nothing.
func TestWrappings(t *testing.T) {
	bare, err := read(of2026)
	if err != nil {
		t.Fatal(err)
	}
	for _, before := range []string{"2026-02-26T14:03:05.123456789Z ", "[pod/router-0/main] ", "[pod/router-0/main] 2026-02-26T14:03:05.1Z ", "2026-02-26T14:03:05.1Z stderr F ", "router-0 main ", "2026-02-26T14:03:05.123Z\t"} {
		text := before + strings.ReplaceAll(strings.TrimSuffix(of2026, "\n"), "\n", "\n"+before)
		if !sniff([]byte(text)) {
			t.Errorf("%q: not recognized", before)
		}
		set, err := read(text)
		if got, want := described(set), described(bare); err != nil || got != want {
			t.Errorf("%q: %v\n%swant\n%s", before, err, got, want)
		}
	}
}

// Prompts and keys in server responses, spans, and unknown lines are not kept.
func TestCanaries(t *testing.T) {
	const canary = "the secret recipe, sk-abcdefghijklmnopqrstuvwx"
	for _, text := range []string{of2026, asJSON, requestsOfDynamo} {
		for _, at := range []string{"no backend worker available", "response_timeout", "status=error", "error sending request", "operation timed out", "HTTP status 503", "chatcmpl-ab", "gnt-1", "closed -> open", "a1", "PrefillDecode"} {
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

func TestMutants(t *testing.T) {
	s := testinput.Subject{Data: []byte(strings.Repeat(of2026+asJSON+of2025+requestsOfDynamo, 3)), Other: []byte(ofRay + asJSON)}
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

func BenchmarkRead(b *testing.B) {
	text := strings.Repeat(of2026+"2026-02-26 14:02:12.000  INFO smg::response: src/middleware.rs:360: finished processing request\n", 2000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := read(text); err != nil {
			b.Fatal(err)
		}
	}
}
