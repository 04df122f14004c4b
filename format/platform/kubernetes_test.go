package platform

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// readEvents writes a text to a file with a fixed modification time, and reads it.
func readEvents(t testing.TB, text string) (*series.Set, *trace.Diags) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "events")
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	written := time.Date(2026, 8, 6, 14, 10, 0, 0, time.UTC)
	if err := os.Chtimes(name, written, written); err != nil {
		t.Fatal(err)
	}
	diags := &trace.Diags{}
	set := series.New(trace.NewSymbols(), diags)
	in := &format.Input{Name: name, Path: name, Open: func() (io.ReadCloser, error) { return os.Open(name) }}
	if _, err := Kubernetes.Index(in, &format.Options{Syms: set.Syms, Diags: diags, Series: set}); err != nil && text != "" {
		t.Fatal(err)
	}
	set.Finish(series.Known{})
	return set, diags
}

func describe(set *series.Set) string {
	var b strings.Builder
	for i := range set.Instants {
		x := &set.Instants[i]
		s := &set.Servers[set.Places[x.Place].Server]
		at := "-"
		if x.Time != 0 {
			at = time.Unix(0, int64(x.Time)).UTC().Format("15:04:05")
		}
		fmt.Fprintf(&b, "%s %s/%s %d %s\n", at, s.Host, s.Name, x.Count, set.Syms.Name(x.Text))
	}
	return b.String()
}

const probe = `{"apiVersion":"v1","kind":"Event","metadata":{"name":"decode-0.17","namespace":"llm","creationTimestamp":"2026-08-06T14:02:44Z"},` +
	`"involvedObject":{"kind":"Pod","namespace":"llm","name":"decode-0","uid":"1"},"reason":"Unhealthy","message":"Readiness probe failed: HTTP probe failed with statuscode: 503",` +
	`"source":{"component":"kubelet","host":"node3"},"firstTimestamp":"2026-08-06T14:02:44Z","lastTimestamp":"2026-08-06T14:05:10Z","count":9,"type":"Warning","eventTime":null,"reportingComponent":"kubelet"}`

const newer = `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"node3.18"},"regarding":{"kind":"Node","name":"node3"},"reason":"NodeNotReady","note":"Node node3 status is now: NodeNotReady",` +
	`"eventTime":"2026-08-06T14:06:00.500000Z","type":"Normal","series":{"count":2,"lastObservedTime":"2026-08-06T14:07:00.000000Z"},"deprecatedSource":{"component":"node-controller"}}`

const pulled = `{"apiVersion":"v1","kind":"Event","involvedObject":{"kind":"Pod","name":"decode-0"},"reason":"Pulled","message":"Container image already present","type":"Normal","firstTimestamp":"2026-08-06T14:00:00Z","lastTimestamp":"2026-08-06T14:00:00Z","count":1}`

// A list, concatenated single events, and a watch give the same.
func TestJSON(t *testing.T) {
	const want = `14:02:44 node3/decode-0 9 pod: Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 503 (until 14:05:10)
14:06:00 node3/ 2 node: NodeNotReady: Node node3 status is now: NodeNotReady (until 14:07:00)
`
	for form, text := range map[string]string{
		"list":   `{"apiVersion":"v1","items":[` + probe + "," + newer + "," + pulled + `],"kind":"List","metadata":{"resourceVersion":""}}`,
		"single": probe + "\n" + newer + "\n" + pulled + "\n",
		"watch":  `{"type":"ADDED","object":` + probe + `}{"type":"ADDED","object":` + newer + `}{"type":"MODIFIED","object":` + pulled + `}`,
	} {
		if !isEvents([]byte(text)) {
			t.Errorf("%s is not recognized", form)
		}
		set, _ := readEvents(t, text)
		if got := describe(set); got != want {
			t.Errorf("%s: got\n%swant\n%s", form, got, want)
		}
	}
}

// Ages count back from the modification time of the file, and a diagnostic says so.
func TestTables(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`LAST SEEN   TYPE      REASON       OBJECT          MESSAGE
7m16s       Warning   Unhealthy    pod/decode-0    Readiness probe failed: statuscode: 503
4m          Normal    Pulled       pod/decode-0    Container image already present
<unknown>   Warning   FailedMount  pod/prefill-1   MountVolume.SetUp failed
`, `- /prefill-1 1 pod: FailedMount: MountVolume.SetUp failed
14:02:44 /decode-0 1 pod: Unhealthy: Readiness probe failed: statuscode: 503
`},
		{`NAMESPACE   LAST SEEN              TYPE      REASON     OBJECT         MESSAGE
llm         58s (x2 over 2m22s)    Warning   BackOff    pod/decode-0   Back-off restarting failed container
`, "14:07:38 /decode-0 2 pod: BackOff: Back-off restarting failed container (until 14:09:02)\n"},
		{`Events:
  Type     Reason     Age                  From               Message
  ----     ------     ----                 ----               -------
  Normal   Started    75s (x2 over 2m40s)  kubelet            Started container webapp
  Warning  Unhealthy  20s (x6 over 115s)   kubelet, node1     Liveness probe failed: statuscode: 500
  Normal   Killing    20s                  kubelet            Container webapp failed liveness probe, will be restarted
`, `14:08:05 node1/ 6 Unhealthy: Liveness probe failed: statuscode: 500 (until 14:09:40)
14:09:40 /events 1 Killing: Container webapp failed liveness probe, will be restarted
`},
		{`pod/decode-0   0/1     Running   6 (118s ago)   20m
  Warning  Unhealthy               25m (x3 over 26m)     kubelet                  Liveness probe failed: HTTP probe failed with statuscode: 404
  Normal   Killing                 25m                   kubelet                  Container vllm failed liveness probe, will be restarted
`, `13:44:00 /events 3 Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 404 (until 13:45:00)
13:45:00 /events 1 Killing: Container vllm failed liveness probe, will be restarted
`},
	} {
		if !isEvents([]byte(c.text)) {
			t.Errorf("not recognized:\n%s", c.text)
		}
		set, diags := readEvents(t, c.text)
		if got := describe(set); got != c.want {
			t.Errorf("got\n%swant\n%s", got, c.want)
		}
		if all := diags.All(); len(all) != 1 || all[0].Code != "event-ages" {
			t.Errorf("%v", all)
		}
	}
}

// The stamps of CI systems before the lines of a table say when it was printed, so that its ages are times.
func TestStampedTable(t *testing.T) {
	table := []string{"LAST SEEN   TYPE      REASON       OBJECT          MESSAGE", "7m16s       Warning   Unhealthy    pod/decode-0    Readiness probe failed: statuscode: 503"}
	for _, before := range []string{"2026-03-01T10:41:05.1234567Z ", "2026-03-01T10:41:05.123456Z 00O ", "[2026-03-01T10:41:05.123Z] "} {
		text := before + "$ kubectl get events\n" + before + table[0] + "\n" + before + table[1] + "\n"
		set, diags := readEvents(t, text)
		const want = "10:33:49 /decode-0 1 pod: Unhealthy: Readiness probe failed: statuscode: 503\n"
		if got := describe(set); !isEvents([]byte(text)) || got != want || len(diags.All()) > 0 {
			t.Errorf("%s: %q, %v", before, got, diags.All())
		}
	}
}

// kubectl's YAML gives the same as its JSON. The layout is kubectl's: sorted keys, quoted
// timestamps, and long messages over several lines.
func TestYAML(t *testing.T) {
	const list = `apiVersion: v1
items:
- apiVersion: v1
  count: 9
  eventTime: null
  firstTimestamp: "2026-08-06T14:02:44Z"
  involvedObject:
    apiVersion: v1
    fieldPath: spec.containers{sglang}
    kind: Pod
    name: decode-0
    namespace: llm
  kind: Event
  lastTimestamp: "2026-08-06T14:05:10Z"
  message: 'Readiness probe failed: HTTP probe failed with
    statuscode: 503'
  metadata:
    creationTimestamp: "2026-08-06T14:02:44Z"
    name: decode-0.17
  reason: Unhealthy
  reportingComponent: kubelet
  source:
    component: kubelet
    host: node3
  type: Warning
- apiVersion: events.k8s.io/v1
  deprecatedSource:
    component: node-controller
  eventTime: "2026-08-06T14:06:00.500000Z"
  kind: Event
  note: |
    Node node3 status is now: NodeNotReady
  reason: NodeNotReady
  regarding:
    kind: Node
    name: node3
  series:
    count: 2
    lastObservedTime: "2026-08-06T14:07:00.000000Z"
  type: Normal
kind: List
metadata:
  resourceVersion: ""
`
	const want = `14:02:44 node3/decode-0 9 pod: Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 503 (until 14:05:10)
14:06:00 node3/ 2 node: NodeNotReady: Node node3 status is now: NodeNotReady (until 14:07:00)
`
	if !isEvents([]byte(list)) {
		t.Error("not recognized")
	}
	set, diags := readEvents(t, list)
	if got := describe(set); got != want || len(diags.All()) > 0 {
		t.Errorf("got\n%swant\n%s%v", got, want, diags.All())
	}
	damaged := strings.Replace(list, "deprecatedSource:", "\t: {[", 1) // the first event is intact
	if set, diags = readEvents(t, damaged); len(diags.All()) != 1 || len(set.Instants) != 1 {
		t.Errorf("%s%v", describe(set), diags.All())
	}
	if isEvents([]byte("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: x\n")) {
		t.Error("a deployment is recognized")
	}
}

func FuzzKubernetes(f *testing.F) {
	f.Add(probe)
	f.Add(`{"items":[` + newer + `]}`)
	f.Add("apiVersion: v1\nitems:\n- reason: Killing\n  involvedObject:\n    name: a\n  type: Warning\n")
	f.Add("LAST SEEN   TYPE      REASON   OBJECT   MESSAGE\n7m    Warning   A   pod/b   c\n")
	f.Fuzz(func(t *testing.T, text string) { readEvents(t, text) })
}

// Damaged lists, in JSON and in YAML, are read up to the damage, and either reported as damaged or not recognized.
func TestKubernetesMutants(t *testing.T) {
	item := `- apiVersion: v1
  count: 9
  firstTimestamp: "2026-08-06T14:02:44Z"
  involvedObject:
    kind: Pod
    name: decode-0
  message: 'Readiness probe failed: statuscode: 503'
  reason: Unhealthy
  type: Warning
`
	asYAML := "apiVersion: v1\nitems:\n" + strings.Repeat(item, 6) + "kind: List\n"
	asJSON := `{"apiVersion":"v1","items":[` + strings.Repeat(probe+","+newer+",", 3) + pulled + `],"kind":"List"}`
	for _, text := range []string{asYAML, asJSON} {
		s := testinput.Subject{Data: []byte(text), Other: []byte(asJSON + "\n" + asYAML), OtherCuts: []int{len(asJSON) + 1}}
		for i, b := range s.Data {
			if b == '\n' || b == ',' {
				s.Cuts = append(s.Cuts, i+1)
			}
		}
		for seed := range testinput.Seeds(40) {
			if m := s.Mutate(seed); len(m.Data) > 0 {
				readEvents(t, string(m.Data))
			}
		}
	}
}

// The status of a pod gives how its container ended and that it waits, in all forms. Healthy pods and containers that completed normally
// give nothing.
func TestPodStatus(t *testing.T) {
	const died = "pod: OOMKilled: container llm: exit code 137, started again 3 times"
	for _, c := range []struct{ name, text, want string }{
		{"describe", "Name:             d-0\nNode:             n1/10.0.0.1\nContainers:\n  llm:\n    Image:          x\n    State:          Running\n      Started:      Mon, 17 Aug 2026 20:53:22 +0000\n    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n      Finished:     Mon, 17 Aug 2026 20:53:20 +0000\n    Restart Count:  3\n  done:\n    State:          Terminated\n      Reason:       Completed\n      Exit Code:    0\n    Last State:     Terminated\n      Reason:       Completed\n    Restart Count:  1\nConditions:\n  Type  Status\n", "1787000000 n1/d-0 " + died + "\n"},
		{"JSON", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"d-0"},"spec":{"nodeName":"n1"},"status":{"containerStatuses":[{"name":"llm","restartCount":3,"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled","finishedAt":"2026-08-17T20:53:20Z"}},"state":{"running":{}}}]}}`, "1787000000 n1/d-0 " + died + "\n"},
		{"a piece of describe", "    Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n      Finished:     Mon, 17 Aug 2026 20:53:20 +0000\n    Restart Count:  3\n", "1787000000 /x pod: OOMKilled: exit code 137, started again 3 times\n"},
		{"cut off", "Last State:     Terminated\n  Reason:       OOMKilled\n  Exit Code:    137\n", "0 /x pod: OOMKilled: exit code 137\n"},
		{"a table", "NAME   READY   STATUS             RESTARTS   AGE\na-0    1/1     Running            0          3d\nb-0    0/1     CrashLoopBackOff   0          3d\n", "0 /b-0 pod: BackOff: restarting failed container\n"},
	} {
		if !Kubernetes.Sniff([]byte(c.text)) {
			t.Errorf("%s: not recognized", c.name)
		}
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		in := &format.Input{Name: "x", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(c.text)), nil }}
		if _, err := indexEvents(in, &format.Options{Syms: set.Syms, Diags: set.Diags, Series: set}); err != nil {
			t.Fatal(err)
		}
		set.Finish(series.Known{})
		got := ""
		for _, x := range set.Instants {
			s := &set.Servers[set.Places[x.Place].Server]
			got += fmt.Sprintf("%d %s/%s %s\n", x.Time/1e9, s.Host, s.Name, set.Syms.Name(x.Text))
		}
		if got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// When somebody collected the output of several commands in one file, a log may follow a table. The log contains more, so the reader of
// logs takes the file.
func TestLogsBehindTables(t *testing.T) {
	const table = "NAME      READY   STATUS    RESTARTS   AGE\ndecode-0  1/1     Running   6          20m\n"
	for text, want := range map[string]bool{
		table: true, table + "\n2026-07-24 is no line of a log\n": true,
		table + "=== decode\n(EngineCore pid=102) INFO 07-23 06:59:56 [connector.py:127] Initialized\n":    false,
		table + "\x1b[2m2026-07-23T07:00:02.284910Z\x1b[0m \x1b[32m INFO\x1b[0m dynamo_runtime: Started\n": false,
		table + "[2026-07-24 10:00:00 TP0] Decode batch, #running-req: 1\n":                                false,
	} {
		if got := isEvents([]byte(text)); got != want {
			t.Errorf("%v, want %v:\n%s", got, want, text)
		}
	}
}
