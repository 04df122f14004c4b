package otlplogs

import (
	"io"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/trace"
)

// TestLogs reads records as collectors and SDKs write them.
func TestLogs(t *testing.T) {
	const at = `"timeUnixNano":"1787007200000000000",`
	doc := func(resource, scope, record string) string {
		return `{"resourceLogs":[{"resource":{"attributes":[` + resource + `]},"scopeLogs":[{"scope":{"name":"` + scope + `"},"logRecords":[{` + record + `}]}]}]}` + "\n"
	}
	text := func(key, value string) string { return `{"key":"` + key + `","value":{"stringValue":"` + value + `"}}` }
	dump := doc(text("k8s.pod.name", "llm-0")+","+text("k8s.container.name", "vllm"), "", at+`"severityText":"INFO","body":{"stringValue":"INFO 08-17 22:53:20 [loggers.py:248] Engine 000: .."}`) +
		// The Collector read this from a container, which only the file path names.
		doc("", "", `"observedTimeUnixNano":1787007200000000001,"body":{"stringValue":"2026-08-17T22:53:20Z stdout F up"},"attributes":[`+text("log.file.path", "/var/log/pods/ns_llm-1_0a1b/sgl/0.log")+`]`) +
		// A message of Python's logging has its level and exception in fields.
		doc(text("service.name", "llm"), "vllm.engine", at+`"severityText":"ERROR","body":{"stringValue":"failed"},"attributes":[`+text("exception.stacktrace", `Traceback\nValueError: x`)+`]`) +
		doc(text("host.name", "node1"), "", at+`"body":{"kvlistValue":{"values":[`+text("MESSAGE", "NVRM: Xid")+`,`+text("__REALTIME_TIMESTAMP", "1787007200000000")+`]}}`) +
		doc("", "", at+`"body":{"kvlistValue":{"values":[{"key":"object","value":{"kvlistValue":{"values":[`+text("kind", "Event")+`,`+text("reason", "Evicted")+`]}}}]}}`) +
		doc(text("k8s.object.name", "llm-0"), "", at+`"severityText":"Warning","body":{"stringValue":"Liveness probe failed"},"attributes":[`+text("k8s.event.reason", "Unhealthy")+`]`)
	in := &format.Input{Name: "logs.jsonl", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(dump)), nil }}
	source, err := Format.Index(in, &format.Options{Diags: &trace.Diags{}})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	want := map[string][]string{
		"logs.jsonl (llm-0/vllm)":        {`{"@timestamp":"2026-08-17T22:53:20Z","pod":"llm-0","log":"INFO 08-17 22:53:20 [loggers.py:248] Engine 000: .."}`},
		"logs.jsonl (llm-1/sgl)":         {`{"@timestamp":"2026-08-17T22:53:20.000000001Z","pod":"llm-1","log":"2026-08-17T22:53:20Z stdout F up"}`},
		"logs.jsonl (llm)":               {`{"@timestamp":"2026-08-17T22:53:20Z","pod":"llm","log":"ERROR vllm.engine: failed\nTraceback\nValueError: x"}`},
		"logs.jsonl (node1)":             {`{"MESSAGE":"NVRM: Xid","__REALTIME_TIMESTAMP":"1787007200000000"}`},
		"logs.jsonl (Kubernetes events)": {`"kind":"Event","reason":"Evicted"`, `"reason":"Unhealthy"`, `"type":"Warning"`, `"lastTimestamp":"2026-08-17T22:53:20Z"`},
	}
	for _, p := range source.Parts {
		r, err := p.Open()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || want[p.Name] == nil {
			t.Errorf("%s: %s, %v", p.Name, got, err)
		}
		for _, part := range want[p.Name] {
			if !strings.Contains(string(got), part) {
				t.Errorf("%s is\n%s\nwithout %s", p.Name, got, part)
			}
		}
		delete(want, p.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

// FuzzIndex checks that no input causes a panic.
func FuzzIndex(f *testing.F) {
	f.Add(`{"resourceLogs":[{"resource":{"attributes":[{"key":"host.name","value":{"stringValue":"a"}}]},"scopeLogs":[{"logRecords":[{"timeUnixNano":1,"body":{"arrayValue":{"values":[{"intValue":"1"}]}}}]}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		in := &format.Input{Name: "x", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
		source, err := Format.Index(in, &format.Options{Diags: &trace.Diags{}})
		if err != nil {
			return
		}
		for _, p := range source.Parts {
			if r, err := p.Open(); err == nil {
				io.Copy(io.Discard, r)
			}
		}
		source.Close()
	})
}
