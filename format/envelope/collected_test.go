package envelope

import (
	"io"
	"strings"
	"testing"
)

// The files are in the formats of the log stores' own tools; all contain the same log of one pod.
func TestCollected(t *testing.T) {
	const want = "[pod/decode-0] 2026-08-22T14:03:05.25Z [2026-08-22 14:03:05 TP0] one\n[pod/decode-0] 2026-08-22T14:03:06Z two \"2\"\n[pod/decode-0] 2026-08-22T14:03:06Z   File \"a.py\", line 1\n"
	for name, data := range map[string]string{
		"logcli": `{"labels":{"namespace":"llm","pod":"decode-0"},"line":"[2026-08-22 14:03:05 TP0] one","timestamp":"2026-08-22T16:03:05.25+02:00"}
{"labels":{"pod":"decode-0"},"line":"two \"2\"\n  File \"a.py\", line 1","timestamp":"2026-08-22T14:03:06Z"}
`,
		"logcli, newest first": `{"labels":{"pod":"decode-0"},"line":"  File \"a.py\", line 1","timestamp":"2026-08-22T14:03:06Z"}
{"labels":{"pod":"decode-0"},"line":"two \"2\"","timestamp":"2026-08-22T14:03:06Z"}
{"labels":{"pod":"decode-0"},"line":"[2026-08-22 14:03:05 TP0] one","timestamp":"2026-08-22T14:03:05.25Z"}
`,
		"Loki": `{"status":"success","data":{"resultType":"streams","result":[{"stream":{"app":"x","pod":"decode-0"},"values":[
["1787407386000000000","two \"2\"\n  File \"a.py\", line 1"],["1787407385250000000","[2026-08-22 14:03:05 TP0] one",{"structuredMetadata":{}}]]}],"stats":{}}}`,
		"CloudWatch": `{"events":[{"logStreamName":"decode-0","timestamp":1787407385250,"message":"[2026-08-22 14:03:05 TP0] one","ingestionTime":1787407386000,"eventId":"1"},
{"logStreamName":"decode-0","timestamp":1787407386000,"message":"two \"2\"\r\n  File \"a.py\", line 1\n","ingestionTime":1787407386000,"eventId":"2"}],"searchedLogStreams":[]}`,
		"CloudWatch Insights": `{"results":[[{"field":"@timestamp","value":"2026-08-22 14:03:06.000"},{"field":"@logStream","value":"decode-0"},{"field":"@message","value":"two \"2\"\n  File \"a.py\", line 1"}],
[{"field":"@timestamp","value":"2026-08-22 14:03:05.250"},{"field":"@message","value":"[2026-08-22 14:03:05 TP0] one"},{"field":"@logStream","value":"decode-0"},{"field":"@ptr","value":"C"}]],"statistics":{},"status":"Complete"}`,
		"gcloud": `[
  {
    "insertId": "b", "resource": {"labels": {"pod_name": "decode-0", "container_name": "c"}, "type": "k8s_container"}, "severity": "ERROR",
    "textPayload": "two \"2\"\n  File \"a.py\", line 1", "receiveTimestamp": "2026-08-22T14:03:09Z", "timestamp": "2026-08-22T14:03:06Z"
  },
  {
    "insertId": "a", "jsonPayload": {"message": "[2026-08-22 14:03:05 TP0] one"}, "resource": {"labels": {"pod_name": "decode-0"}}, "timestamp": "2026-08-22T14:03:05.25Z"
  }
]`,
		"Filebeat": `{"@timestamp":"2026-08-22T14:03:05.250Z","host":{"name":"n1"},"kubernetes":{"pod":{"name":"decode-0"}},"message":"[2026-08-22 14:03:05 TP0] one"}
{"@timestamp":"2026-08-22T14:03:06.000Z","kubernetes":{"pod":{"name":"decode-0"}},"message":"two \"2\"\n  File \"a.py\", line 1"}
`,
		"Elasticsearch": `{"took":1,"hits":{"total":{"value":2},"hits":[{"_index":"x","_source":{"@timestamp":"2026-08-22T14:03:05.250Z","kubernetes":{"pod_name":"decode-0"},"log":"[2026-08-22 14:03:05 TP0] one\n"}},
{"_source":{"@timestamp":"2026-08-22T14:03:06.000Z","kubernetes":{"pod_name":"decode-0"},"log":"two \"2\"\n  File \"a.py\", line 1"}}]}}`,
		"Fluent Bit": `{"date":1787407385.25,"log":"[2026-08-22 14:03:05 TP0] one","kubernetes":{"pod_name":"decode-0","container_name":"c"}}
{"date":1787407386.0,"log":"two \"2\"\n  File \"a.py\", line 1","kubernetes":{"pod_name":"decode-0"}}
`,
		"Azure":          `[{"LogMessage":"two \"2\"\n  File \"a.py\", line 1","PodName":"decode-0","TimeGenerated":"2026-08-22T14:03:06Z"},{"LogMessage":"[2026-08-22 14:03:05 TP0] one","PodName":"decode-0","TimeGenerated":"2026-08-22T14:03:05.25Z"}]`,
		"CSV of Grafana": "\"Time\",\"Line\",\"labels\",\"pod\"\n2026-08-22T14:03:06Z,\"two \"\"2\"\"\n  File \"\"a.py\"\", line 1\",{},decode-0\n2026-08-22T14:03:05.25Z,[2026-08-22 14:03:05 TP0] one,{},decode-0\n",
	} {
		if got := unwrapped(t, name, data); got != want {
			t.Errorf("%s:\n%swant\n%s", name, got, want)
		}
	}
}

// unwrapped returns the log in a file that a log store exported.
func unwrapped(t *testing.T, name, data string) string {
	t.Helper()
	s, err := Open(name, strings.NewReader(data))
	if err != nil || s.Outer != "collected" {
		t.Errorf("%s: not recognized: %v", name, err)
		return ""
	}
	got, err := io.ReadAll(s)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	return string(got)
}

func TestCollectedOdd(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"systemd, with colors as bytes", `{"__REALTIME_TIMESTAMP":"1787407385250000","_HOSTNAME":"n1","SYSLOG_IDENTIFIER":"kernel","MESSAGE":"NVRM: x"}
{"__REALTIME_TIMESTAMP":"1787407385250001","_HOSTNAME":"n1","SYSLOG_IDENTIFIER":"sglang","_PID":"41","MESSAGE":[27,91,109,97]}
`, "2026-08-22T14:03:05.25Z n1 kernel: NVRM: x\n2026-08-22T14:03:05.250001Z n1 sglang[41]: \x1b[ma\n"},
		{"a damaged line, and one that is cut off", `{"labels":{"pod":"p"},"line":"a","timestamp":"2026-08-22T14:03:05Z"}
{"labels":{"pod":"p"},"line":"b
{"labels":{"pod":"p"},"line":"c","timestamp":"2026-08-22T14:03:06Z"}
{"labels":{"po`, "[pod/p] 2026-08-22T14:03:05Z a\n{\"labels\":{\"pod\":\"p\"},\"line\":\"b\n[pod/p] 2026-08-22T14:03:06Z c\n{\"labels\":{\"po\n"},
		{"a line with a stamp, a record, and none", `[{"insertId":"1","textPayload":"2026-08-22 14:03:05  INFO smg::server: x","timestamp":"2026-08-22T14:03:05Z"},
{"insertId":"2","textPayload":"{\"level\":\"WARN\"}","timestamp":"2026-08-22T14:03:06Z"},{"insertId":"3","textPayload":"","timestamp":"2026-08-22T14:03:06Z"}]`, "2026-08-22 14:03:05  INFO smg::server: x\n{\"level\":\"WARN\"}\n"},
		{"text of Grafana", "Common labels: {\"pod\":\"a\"}\nLine limit: 1000 (2 returned)\nTotal bytes processed: 1.2 MB\n\n\n2026-08-22T14:03:06.000Z\t2026-08-22T14:03:06.000Z\ttwo\n  more\n2026-08-22T14:03:05.000Z\t2026-08-22T14:03:05.000Z\t[2026-08-22 14:03:05 TP0] one\n",
			"2026-08-22T14:03:05Z [2026-08-22 14:03:05 TP0] one\n2026-08-22T14:03:06Z two\n2026-08-22T14:03:06Z   more\n"},
		{"CSV of Kibana, whose zone is the browser's", "\"@timestamp\",\"kubernetes.pod.name\",message\n\"Aug 22, 2026 @ 16:03:06.000\",a,two\n\"Aug 22, 2026 @ 16:03:05.000\",a,one\n", "[pod/a] one\n[pod/a] two\n"},
		{"streams of a document one after another", `[{"insertId":"1","resource":{"labels":{"pod_name":"a"}},"textPayload":"1","timestamp":"2026-08-22T14:03:05Z"},
{"insertId":"1","resource":{"labels":{"pod_name":"b"}},"textPayload":"2","timestamp":"2026-08-22T14:03:06Z"},{"insertId":"1","resource":{"labels":{"pod_name":"a"}},"textPayload":"3","timestamp":"2026-08-22T14:03:07Z"}]`,
			"[pod/a] 2026-08-22T14:03:05Z 1\n[pod/a] 2026-08-22T14:03:07Z 3\n[pod/b] 2026-08-22T14:03:06Z 2\n"},
	} {
		if got := unwrapped(t, c.name, c.data); got != c.want {
			t.Errorf("%s:\n%swant\n%s", c.name, got, c.want)
		}
	}
}

// Other files contain the keys of a log store, too, inside texts or with a different meaning.
func TestNotCollected(t *testing.T) {
	for _, data := range []string{
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"a","attributes":[{"key":"x","value":{"stringValue":"{\"textPayload\":\"x\",\"insertId\":1}"}}]}]}]}]}`,
		`{"timestamp":"2026-07-26 14:02:11.250","level":"WARN","message":"Health probe failed","target":"smg::worker::manager"}`,
		`{"kind":"List","items":[{"kind":"Event","message":"x","metadata":{},"lastTimestamp":"2026-08-22T14:03:05Z"}]}`,
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"pod":"a"},"values":[[1787407385,"1"]]}]}}`,
		`2026-08-22 "line": "labels": "timestamp":`,
		"timestamp, name, clocks.current.sm [MHz]\n2026-08-22, H100, 1980\n",
		"A message, at any time, of a line\n",
	} {
		if s, err := Open("x", strings.NewReader(data)); err != nil || s.Outer != "" {
			t.Errorf("%s is taken for %s, %v", data, s.Outer, err)
		}
	}
}
