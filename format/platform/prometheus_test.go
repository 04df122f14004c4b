package platform

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

func read(t testing.TB, text string) (*series.Set, []trace.Diag) {
	t.Helper()
	set, diags, err := tryRead(text)
	if err != nil && !errors.Is(err, errUntimed) {
		t.Fatal(err)
	}
	return set, diags
}

func tryRead(text string) (*series.Set, []trace.Diag, error) { return readFiles("metrics", text) }

func readNamed(t testing.TB, name, text string) (*series.Set, []trace.Diag) {
	t.Helper()
	set, diags, err := readFiles(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return set, diags
}

// readFiles reads several files, given as pairs of name and text.
func readFiles(files ...string) (set *series.Set, all []trace.Diag, err error) {
	syms, diags := trace.NewSymbols(), &trace.Diags{}
	set = series.New(syms, diags)
	for k := 0; k < len(files) && err == nil; k += 2 {
		in := &format.Input{Name: files[k], Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(files[k+1])), nil }}
		_, err = indexPrometheus(in, &format.Options{Syms: syms, Diags: diags, Series: set})
	}
	set.Finish(series.Known{})
	return set, diags.All(), err
}

// show prints all samples of a set.
func show(s *series.Set) string {
	var b strings.Builder
	for i, x := range s.List {
		p := &s.Places[x.Place]
		server := &s.Servers[p.Server]
		fmt.Fprintf(&b, "%s %s/%s/%s DP%d TP%d GPU%d %s", s.Metric(x.Metric).Name, server.Host, server.Name, server.Role, p.Rank.DP, p.Rank.TP, p.GPU, s.Syms.Name(x.Label))
		if s.Metric(x.Metric).Kind == series.Bucket {
			fmt.Fprintf(&b, " le %g", x.Most)
		}
		for v := range s.Each(i) {
			fmt.Fprintf(&b, " %d=%g", v.Time-1787000000_000000000, v.Value)
		}
		b.WriteByte('\n')
	}
	for _, x := range s.Instants {
		fmt.Fprintf(&b, "%d %s: %s\n", x.Time-1787000000_000000000, x.Kind, s.Syms.Name(x.Text))
	}
	return b.String()
}

// A query_range response gives series of servers and GPUs, and an Xid that changes.
func TestRange(t *testing.T) {
	const text = `{"status":"success","data":{"resultType":"matrix","result":[
{"metric":{"__name__":"sglang:token_usage","dp_rank":"1","engine_type":"decode","instance":"10.0.0.7:30000","job":"sgl","model_name":"m","moe_ep_rank":"4","pod":"decode-0","pp_rank":"0","tp_rank":"4"},"values":[[1787000015.5,"0.5"],[1787000000.123,"0.25"],[1787000030,"NaN"]]},
{"metric":{"__name__":"DCGM_FI_DEV_SM_CLOCK","gpu":"3","UUID":"GPU-1","device":"nvidia3","modelName":"NVIDIA H200","Hostname":"node1"},"values":[[1787000000,"1980"],[1787000015,"1410"]]},
{"metric":{"__name__":"DCGM_FI_DEV_XID_ERRORS","gpu":"3","UUID":"GPU-1","Hostname":"node1"},"values":[[1787000000,"13"],[1787000015,"13"],[1787000030,"79"],[1787000045,"79"]]},
{"metric":{},"values":[[1787000000,"1"]]},
{"metric":{"__name__":"sglang:time_to_first_token_seconds_bucket","le":"0.5","pod":"decode-0","instance":"10.0.0.7:30000"},"values":[[1787000000,"7"]]}]}}`
	set, diags := read(t, text)
	const want = `KV usage 10.0.0.7/decode-0/decode DP1 TP4 GPU-1  123000000=25 15500000000=50
SM clock node1// DP-1 TP-1 GPU3  0=1980 15000000000=1410
last Xid node1// DP-1 TP-1 GPU3  0=13 15000000000=13 30000000000=79 45000000000=79
TTFT 10.0.0.7/decode-0/decode DP-1 TP-1 GPU-1  le 0.5 0=7
30000000000 hardware: Xid 79
`
	if got := show(set); got != want || len(diags) != 0 {
		t.Errorf("%v\n%s\nwant\n%s", diags, got, want)
	}
}

// The text format has times in milliseconds, OpenMetrics in seconds. Brackets and quotes within labels do not end them.
func TestText(t *testing.T) {
	const text = `# HELP sglang:num_queue_reqs The number of requests in the waiting queue.
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{model_name="a}\"b",tp_rank="0",pp_rank="0"} 655.0 1787000000500
# TYPE sglang:e2e_request_latency_seconds histogram
sglang:e2e_request_latency_seconds_bucket{le="+Inf",model_name="m"} 12.0 1787000000.25 # {trace_id="x"} 0.5
vllm:kv_cache_usage_perc{engine="2"} 0.026 1787000001
sglang:per_stage_req_latency_seconds_sum{stage="prefill_forward"} NaN 1787000001
this is not a sample
`
	set, diags := read(t, text)
	const want = `queued /metrics/unified DP-1 TP0 GPU-1  500000000=655
E2E /metrics/unified DP-1 TP-1 GPU-1  le +Inf 250000000=12
KV usage /metrics/unified DP2 TP-1 GPU-1  1000000000=2.6
sglang:per_stage_req_latency_seconds_sum /metrics/unified DP-1 TP-1 GPU-1 stage=prefill_forward
`
	if got := show(set); got != want || len(diags) != 1 || !strings.Contains(diags[0].Msg, "lines that are not samples were skipped: 1, the first is line 8") {
		t.Errorf("%v\n%s\nwant\n%s", diags, got, want)
	}
}

// Engines have different names for the same metric.
func TestNamesOfEngines(t *testing.T) {
	const want = "running 3, queued 4, KV usage 50, E2E 9"
	for engine, text := range map[string]string{
		"TensorRT-LLM": "trtllm_num_requests_running 3 1787000000\ntrtllm_num_requests_waiting 4 1787000000\ntrtllm_kv_cache_utilization 0.5 1787000000\ntrtllm_e2e_request_latency_seconds_bucket{le=\"+Inf\"} 9 1787000000\n",
		"LMDeploy":     "lmdeploy:num_requests_running 3 1787000000\nlmdeploy:num_requests_waiting 4 1787000000\nlmdeploy:gpu_cache_usage_perc 0.5 1787000000\nlmdeploy:e2e_request_latency_seconds_bucket{le=\"+Inf\"} 9 1787000000\n",
		"TGI":          "tgi_batch_current_size 3 1787000000\ntgi_queue_size 4 1787000000\ntgi_request_duration_bucket{le=\"+Inf\"} 9 1787000000\n",
	} {
		set, _ := read(t, text)
		var said []string
		for i := range set.List {
			for v := range set.Each(i) {
				said = append(said, fmt.Sprint(set.Metric(set.List[i].Metric).Name, " ", v.Value))
			}
		}
		want := want
		if engine == "TGI" { // TGI has no KV cache metric
			want = strings.Replace(want, "KV usage 50, ", "", 1)
		}
		if got := strings.Join(said, ", "); got != want || set.Servers[0].Engine != engine {
			t.Errorf("%s: %s, want %s", set.Servers[0].Engine, got, want)
		}
	}
}

// Triton's labels determine the meaning of a metric. One that ends in "_count" is not a counter if its type says otherwise.
func TestTriton(t *testing.T) {
	const text = `# TYPE nv_inference_pending_request_count gauge
nv_inference_pending_request_count{model="m",version="1"} 2 1787000000
nv_trt_llm_request_metrics{model="m",request_type="waiting",version="1"} 4 1787000000
nv_trt_llm_request_metrics{model="m",request_type="scheduled",version="1"} 3 1787000000
nv_trt_llm_request_metrics{model="m",request_type="max",version="1"} 64 1787000000
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="m",version="1"} 0.5 1787000000
`
	set, _ := read(t, text)
	var said []string
	for i := range set.List {
		m := set.Metric(set.List[i].Metric)
		for v := range set.Each(i) {
			said = append(said, fmt.Sprint(m.Name, " ", m.Kind == series.Counter, " ", set.Syms.Name(set.List[i].Label), " ", v.Value))
		}
	}
	const want = "running false  3, queued false  4, KV usage false  50, nv_inference_pending_request_count false model=m,version=1 2, nv_trt_llm_request_metrics false model=m,request_type=max,version=1 64"
	slices.Sort(said)
	wanted := strings.Split(want, ", ")
	slices.Sort(wanted)
	if !slices.Equal(said, wanted) {
		t.Errorf("%q", said)
	}
}

// Samples without times get the modification time of the file, and a diagnostic says so. For a pipe, there is none.
func TestUntimed(t *testing.T) {
	const text = "# TYPE queue gauge\nqueue 5\n"
	if _, _, err := tryRead(text); !errors.Is(err, errUntimed) {
		t.Error(err)
	}
	name := filepath.Join(t.TempDir(), "metrics.txt")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	syms, diags := trace.NewSymbols(), &trace.Diags{}
	set := series.New(syms, diags)
	in := &format.Input{Name: name, Path: name, Open: func() (io.ReadCloser, error) { return os.Open(name) }}
	if _, err := indexPrometheus(in, &format.Options{Syms: syms, Diags: diags, Series: set}); err != nil || set.Len() != 1 || len(diags.All()) != 1 || diags.All()[0].Code != "metrics-untimed" {
		t.Errorf("%v, %d, %v", err, set.Len(), diags.All())
	}
}

// The time in a file's name, or in that of its directory, is the time of its values, unless the file is older.
func TestTimeInTheName(t *testing.T) {
	written := trace.Time(time.Date(2026, 8, 18, 0, 0, 0, 0, time.UTC).UnixNano())
	for path, want := range map[string]string{
		"a/sglang-0_20260817_205320.prom":         "2026-08-17 20:53:20 local",
		"a-2026-08-17T205320Z.prom":               "2026-08-17 20:53:20 UTC",
		"metrics-2026-08-17T20:53.txt":            "2026-08-17 20:53:00 local",
		"m.1787000000.txt":                        "2026-08-17 20:53:20 UTC",
		"m_1787000000123.txt":                     "2026-08-17 20:53:20 UTC",
		"2026-08-17/metrics_205320.txt":           "2026-08-17 20:53:20 local",
		"incident_bundle_20260817_205320/metrics": "2026-08-17 20:53:20 local",
		"2026-08-17/metrics.txt":                  "", // a day says too little
		"metrics_205320.txt":                      "",
		"model-20261231_000000.txt":               "", // that is no time to save it
		"metrics.txt":                             "",
	} {
		at, local, ok := namedAt(path, written)
		got := ""
		if ok {
			got = time.Unix(0, int64(at)).UTC().Format(time.DateTime) + map[bool]string{true: " local", false: " UTC"}[local]
		}
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	name := filepath.Join(t.TempDir(), "s_20260101_100000.prom")
	if err := os.WriteFile(name, []byte("# TYPE queue gauge\nqueue 5\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	syms, diags := trace.NewSymbols(), &trace.Diags{}
	set := series.New(syms, diags)
	in := &format.Input{Name: name, Path: name, Open: func() (io.ReadCloser, error) { return os.Open(name) }}
	if _, err := indexPrometheus(in, &format.Options{Syms: syms, Diags: diags, Series: set}); err != nil || len(diags.All()) != 1 || diags.All()[0].Code != "metrics-named" || !set.Sources[0].Zone.Local {
		t.Errorf("%v, %v, %+v", err, diags.All(), set.Sources)
	}
	for v := range set.Each(0) {
		if v.Time != trace.Time(time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC).UnixNano()) {
			t.Error(v.Time)
		}
	}
}

// Where a response is damaged is said.
func TestDamagedRange(t *testing.T) {
	const text = `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"a"},"values":[[1787000000,"1"]]},!`
	syms, diags := trace.NewSymbols(), &trace.Diags{}
	in := &format.Input{Name: "m.json", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}
	if _, err := indexPrometheus(in, &format.Options{Syms: syms, Diags: diags, Series: series.New(syms, diags)}); err != nil || len(diags.All()) != 1 || diags.All()[0].Pos.Offset != int64(len(text)-1) {
		t.Errorf("%v, %+v", err, diags.All())
	}
}

// FuzzIndex reads arbitrary data: values are numbers, and times are not before 1970.
func FuzzIndex(f *testing.F) {
	f.Add(`{"data":{"resultType":"matrix","result":[{"metric":{"__name__":"a"},"values":[[1787000000.5,"1"],["x"]]}]}}`)
	f.Add("# TYPE a counter\na{b=\"c\\\"}\"} 1e300 1787000000000\na_total{} +Inf\n")
	f.Fuzz(func(t *testing.T, text string) {
		set, _ := read(t, text)
		for i := range set.List {
			for v := range set.Each(i) {
				if v.Time < 0 || math.IsNaN(v.Value) {
					t.Fatalf("%+v", v)
				}
			}
		}
	})
}

// All ways to export metrics give the same.
func TestExports(t *testing.T) {
	const want = `running 10.0.0.7/10.0.0.7:30000/unified DP-1 TP0 GPU-1  0=3 15000000000=5
running 10.0.0.8/10.0.0.8:30000/unified DP-1 TP0 GPU-1  0=4
`
	for name, text := range map[string]string{
		"VictoriaMetrics": `{"metric":{"__name__":"sglang:num_running_reqs","instance":"10.0.0.7:30000","tp_rank":"0"},"values":[3,5,null],"timestamps":[1787000000000,1787000015000,1787000030000]}
{"metric":{"__name__":"sglang:num_running_reqs","instance":"10.0.0.8:30000","tp_rank":"0"},"values":[4],"timestamps":[1787000000000]}
`,
		"remote read": `{"results":[{"timeseries":[{"labels":[{"name":"__name__","value":"sglang:num_running_reqs"},{"name":"instance","value":"10.0.0.7:30000"},{"name":"tp_rank","value":"0"}],"samples":[{"timestamp":1787000000000,"value":3},{"timestamp":1787000015000,"value":5}]},
{"labels":[{"name":"__name__","value":"sglang:num_running_reqs"},{"name":"instance","value":"10.0.0.8:30000"},{"name":"tp_rank","value":"0"}],"samples":[{"timestamp":1787000000000,"value":4}]}]}]}`,
		"Grafana's frames": `{"results":{"A":{"frames":[{"schema":{"fields":[{"name":"Time","type":"time"},{"name":"v","type":"number","labels":{"__name__":"sglang:num_running_reqs","instance":"10.0.0.7:30000","tp_rank":"0"}},
{"name":"v","type":"number","labels":{"__name__":"sglang:num_running_reqs","instance":"10.0.0.8:30000","tp_rank":"0"}},{"name":"v","type":"number"}]},"data":{"values":[[1787000000000,1787000015000],[3,5],[4,null],[1,1]]}}]}}}`,
		"Grafana's CSV": `"Time","{__name__=""sglang:num_running_reqs"", instance=""10.0.0.7:30000"", tp_rank=""0""}","sglang:num_running_reqs{instance=""10.0.0.8:30000"", tp_rank=""0""}","a legend"
2026-08-17 20:53:20,3,4,1
2026-08-17 20:53:35,5,,1
`,
		"promtool": `{__name__="sglang:num_running_reqs", instance="10.0.0.7:30000", tp_rank="0"} 3 1787000000000
{__name__="sglang:num_running_reqs", instance="10.0.0.7:30000", tp_rank="0"} 5 1787000015000
{__name__="sglang:num_running_reqs", instance="10.0.0.8:30000", tp_rank="0"} 4 1787000000000
`,
	} {
		if !Prometheus.Sniff([]byte(text)) {
			t.Errorf("%s: not recognized", name)
		}
		set, _ := read(t, text)
		if got := show(set); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
		if local := set.Sources[0].Zone.Local; local != (name == "Grafana's CSV") {
			t.Errorf("%s: local is %t", name, local)
		}
	}
}

// Text copied from a terminal begins with the command, and may include curl's progress meter.
func TestCopiedScrape(t *testing.T) {
	text := `Mon Aug 17 20:53:20 UTC 2026
root@gpu7:~# curl http://127.0.0.1:30000/metrics | grep req
  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current
                                 Dload  Upload   Total   Spent    Left  Speed
100 53210    0 53210    0     0  1443k      0 --:--:-- --:--:-- --:--:-- 1443k
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{model_name="m"} 7
`
	if !Prometheus.Sniff([]byte(text)) {
		t.Fatal("not recognized")
	}
	set, diags := read(t, text)
	if got := show(set); got != "queued /metrics/unified DP-1 TP-1 GPU-1  0=7\n" || set.Places[0].Rank != trace.NoRank {
		t.Error(got, set.Places)
	}
	if slices.ContainsFunc(diags, func(d trace.Diag) bool { return d.Code == "metrics-bad-line" }) {
		t.Error(diags)
	}
}

// The output of a loop of date and curl has the time of each scrape, and one file is about one server.
func TestDatesBetweenScrapes(t *testing.T) {
	for _, dates := range [][2]string{
		{"Mon Aug 17 20:53:20 UTC 2026", "Mon Aug 17 20:53:35 UTC 2026"}, {"# 2026-08-17T20:53:20+00:00", "# 2026-08-17T20:53:35+00:00"},
		{"=== 1787000000 ===", "=== 1787000015 ==="}, {"2026-08-17 20:53:20", "2026-08-17 20:53:35"},
	} {
		text := dates[0] + "\n# TYPE sglang:num_running_reqs gauge\nsglang:num_running_reqs{tp_rank=\"0\"} 3\n" + dates[1] + "\n# TYPE sglang:num_running_reqs gauge\nsglang:num_running_reqs{tp_rank=\"0\"} 5\n"
		if !Prometheus.Sniff([]byte(text)) {
			t.Errorf("%s: not recognized", dates[0])
		}
		set, diags := read(t, text)
		if got := show(set); got != "running /metrics/unified DP-1 TP0 GPU-1  0=3 15000000000=5\n" || (len(diags) != 0) != strings.HasPrefix(dates[0], "2026") { // dates without a time zone
			t.Errorf("%s: %v\n%s", dates[0], diags, got)
		}
	}
}

// Renamed vLLM metrics are recognized, and so are llama.cpp's.
func TestOtherNames(t *testing.T) {
	for name, want := range map[string]series.MetricID{"ray_vllm_num_requests_waiting": series.Queued, "ray_vllm:num_requests_running": series.Running, "vllm_kv_cache_usage_perc": series.KVUsage,
		"llamacpp:requests_deferred": series.Queued, "llamacpp:requests_processing": series.Running} {
		set, _ := read(t, "# TYPE "+name+" gauge\n"+name+`{instance="a:1"} 0.5 1787000000000`+"\n")
		if len(set.List) != 1 || set.List[0].Metric != want {
			t.Errorf("%s: %+v", name, set.List)
		}
	}
}

// Labels and file names distinguish servers.
func TestSpeakers(t *testing.T) {
	for labels, want := range map[string]string{
		`pod="a",instance="b:1"`: "a", `exported_instance="a:1",instance="gateway:1"`: "a:1", `kubernetes_pod_name="a"`: "a", `target="a:1"`: "a:1", `exported_pod="a",pod="gateway"`: "a",
		`WorkerId="a",instance="node1:1",deployment="llm"`: "a",
	} {
		set, _ := read(t, "sglang:num_running_reqs{"+labels+`,model_name="m"} 3 1787000000000`+"\n")
		if got := set.Servers[0].Name; got != want || set.Syms.Name(set.List[0].Label) != "" {
			t.Errorf("%s: server %q, want %q; the rest is %q", labels, got, want, set.Syms.Name(set.List[0].Label))
		}
	}
	for path, want := range map[string]string{
		"x/sglang-1-2026-08-17T20:53:20.prom": "sglang-1", "x/10.0.0.1_30000-205320.txt": "10.0.0.1_30000", "x/sglang-1_1787000000.prom": "sglang-1", "node1/2026-08-17_20-53-20.txt": "node1",
		"x/server-1.prom": "", "x/metrics.txt": "", "x/10.0.0.1_30000.txt": "",
	} {
		if got := speaker(path); got != want {
			t.Errorf("%s: server %q, want %q", path, got, want)
		}
	}
	for path, want := range map[string]string{ // equal file names in different folders are different servers
		"a/metrics-2026-08-17T20:53:20.prom": "a", "x/a/vllm_1787000000.prom": "x/a/vllm", "x/b/vllm_1787000000.prom": "x/b/vllm", "a/2026-08-17/scrape-205320.txt": "a", "a/metrics.txt": "",
	} {
		if got := pathOfSpeaker(path); got != want {
			t.Errorf("%s: server %q, want %q", path, got, want)
		}
	}
}

// A legend, or else the panel title, determines the metric of a column, and the legends then name
// servers. If neither is known, the metric is named after the panel, and a diagnostic says so.
func TestLegends(t *testing.T) {
	for _, c := range []struct {
		file, text, want string
		unknown          bool
	}{
		{"x/Running Requests-data-2026-08-17 20_53_20.csv", "Time,decode-0,decode-1\n2026-08-17 20:53:20,3,4\n", `running decode-0/decode-0/unified DP-1 TP-1 GPU-1  0=3
running decode-1/decode-1/unified DP-1 TP-1 GPU-1  0=4
`, false},
		{"panel.csv", "\"Time\",\"Num Running\",\"Num Waiting\",\"GPU Cache Usage\"\n1787000000000,3,4,50\n", `running //unified DP-1 TP-1 GPU-1  0=3
queued //unified DP-1 TP-1 GPU-1  0=4
KV usage //unified DP-1 TP-1 GPU-1  0=50
`, false},
		{"x/TTFT-data-as-joinbyfield.csv", "Time,p99\n1787000000000,3\n", "TTFT // DP-1 TP-1 GPU-1 p99 0=3\n", true},
		{"x/KV Cache Utilization-data.csv", "\ufeffsep=,\r\nTime,a,b\r\n2026-08-17 20:53:35,99.5%,1%\r\n2026-08-17 20:53:20,20%,\r\n", `KV usage a/a/unified DP-1 TP-1 GPU-1  0=20 15000000000=99.5
KV usage b/b/unified DP-1 TP-1 GPU-1  15000000000=1
`, false},
		{"x/Queued requests-data-as-seriestorows.csv", "Time,Metric,Value\n2026-08-17T20:53:20Z,a,1.5 K\n2026-08-17T20:53:20Z,b,2\n2026-08-17T20:53:35Z,a,7\n", `queued a/a/unified DP-1 TP-1 GPU-1  0=1500 15000000000=7
queued b/b/unified DP-1 TP-1 GPU-1  0=2
`, false},
		{"q.csv", "Time,__name__,instance,Value #A\n2026-08-17T20:53:20Z,sglang:num_queue_reqs,a:1,4\n", "queued a/a:1/unified DP-1 TP-1 GPU-1  0=4\n", false},
		{"x/Rate-data.csv", "Time,\"{pod=\"\"a\"\"}\"\n2026-08-17T20:53:20Z,4\n", "Rate // DP-1 TP-1 GPU-1 {pod=\"a\"} 0=4\n", true},
		{"rate.json", `{"data":{"resultType":"matrix","result":[{"metric":{"pod":"a"},"values":[[1787000000,"4"]]}]}}`, "rate // DP-1 TP-1 GPU-1 pod=a 0=4\n", true},
	} {
		if !Prometheus.Sniff([]byte(c.text)) {
			t.Errorf("%s: not recognized", c.text)
		}
		set, diags := readNamed(t, c.file, c.text)
		if got := show(set); got != c.want {
			t.Errorf("%s: got\n%swant\n%s", c.file, got, c.want)
		}
		if c.unknown != slices.ContainsFunc(diags, func(d trace.Diag) bool { return d.Code == "metrics-legend" }) {
			t.Errorf("%s: %v", c.file, diags)
		}
	}
	if Prometheus.Sniff([]byte("Time,Temperature\nnoon,3\n")) {
		t.Error("any table is taken for a panel")
	}
}

// Values that a query summed over servers name none, and a diagnostic says so. Ratios above 1 are dropped.
func TestSums(t *testing.T) {
	set, diags := read(t, `{"status":"success","data":{"resultType":"matrix","result":[
{"metric":{"__name__":"sglang:num_running_reqs","job":"decode"},"values":[[1787000000,"90"]]},
{"metric":{"__name__":"sglang:token_usage","job":"decode"},"values":[[1787000000,"2.4"],[1787000015,"0.9"]]}]}}`)
	if got := show(set); got != "running /decode/unified DP-1 TP-1 GPU-1  0=90\nKV usage /decode/unified DP-1 TP-1 GPU-1  15000000000=90\n" {
		t.Error(got)
	}
	if len(diags) != 1 || diags[0].Code != "metrics-summed" {
		t.Errorf("%v", diags)
	}
}

// Text files that no label distinguishes are from one server each, unless their contents show a single process.
func TestFilesWithoutLabels(t *testing.T) {
	text := func(at, counted, created int) string {
		return fmt.Sprintf("# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total{engine=\"0\"} %d %d000\nvllm:prompt_tokens_created{engine=\"0\"} %d %d000\n", counted, at, created, at)
	}
	bare := func(at, counted int) string {
		all, _, _ := strings.Cut(text(at, counted, 0), "vllm:prompt_tokens_created")
		return all
	}
	for _, c := range []struct {
		name    string
		files   []string
		servers int
		told    bool
	}{
		{"of two servers", []string{"n1/a.prom", bare(1787000000, 5), "n1/b.prom", bare(1787000005, 9)}, 2, true},
		{"at the same time", []string{"x-before.prom", bare(1787000000, 5), "x-after.prom", bare(1787000000, 9)}, 2, true},
		{"before and after", []string{"x-before.prom", bare(1787000000, 5), "x-after.prom", bare(1787000600, 9)}, 1, false},
		{"before and after, of which one counts less", []string{"x-before.prom", bare(1787000000, 9), "x-after.prom", bare(1787000600, 5)}, 2, true},
		{"of one process", []string{"1.prom", text(1787000000, 5, 77), "2.prom", text(1787000600, 9, 77)}, 1, false},
		{"of two processes, which count on by chance", []string{"x-before.prom", text(1787000000, 5, 77), "x-after.prom", text(1787000600, 9, 78)}, 2, true},
	} {
		set, diags, err := readFiles(c.files...)
		if err != nil {
			t.Fatal(err)
		}
		of := map[int32]int{}
		for i, x := range set.List {
			if set.N(i) > 0 && strings.HasSuffix(set.Metric(x.Metric).Name, "_total") {
				of[set.Places[x.Place].Server] += set.N(i)
			}
		}
		n := 0
		for _, k := range of {
			n += k
		}
		if told := slices.ContainsFunc(diags, func(d trace.Diag) bool { return d.Code == "metrics-unnamed" }); len(of) != c.servers || n != 2 || told != c.told {
			t.Errorf("%s: %v, %t", c.name, of, told)
		}
	}
}

// TestGateways: responses counted by gateways and servers are reported if errors are more than a few of many, and so is a gateway that
// removes a server and adds it back.
func TestGateways(t *testing.T) {
	row := func(labels string, values ...int) string {
		text := `{"metric":{` + labels + `},"values":[`
		for i, v := range values {
			text += fmt.Sprintf(`[%d,"%d"],`, 1787007200+15*i, v)
		}
		return strings.TrimSuffix(text, ",") + "]}"
	}
	set, _ := read(t, `{"status":"success","data":{"resultType":"matrix","result":[`+strings.Join([]string{
		row(`"__name__":"smg_http_responses_total","instance":"10.0.0.10:29000","status_code":"200"`, 0, 100, 200, 300),
		row(`"__name__":"smg_http_responses_total","instance":"10.0.0.10:29000","status_code":"503"`, 4, 4, 14, 30),
		row(`"__name__":"smg_http_responses_total","instance":"10.0.0.10:29000","status_code":"429"`, 0, 0, 0, 5),
		row(`"__name__":"traefik_service_requests_total","instance":"10.0.0.9:80","service":"llm","code":"502"`, 7, 7, 8, 3),
		row(`"__name__":"http_requests_total","instance":"10.0.0.5:8000","status":"5xx"`, 0, 1, 2, 3),
		row(`"__name__":"http_requests_total","instance":"10.0.0.5:8000","status":"2xx"`, 0, 10000, 20000, 30000),
		row(`"__name__":"smg_worker_health","instance":"10.0.0.10:29000","worker":"http://10.0.1.2:30000"`, 1, 0, 0, 1),
		row(`"__name__":"smg_worker_health","instance":"10.0.0.10:29000","worker":"http://10.0.1.3:30000"`, 1, 1, 1, 1),
		row(`"__name__":"smg_worker_cb_state","instance":"10.0.0.10:29000","worker":"http://10.0.1.4:30000"`, 0, 1, 2, 2),
	}, ",")+`]}}`)
	got := map[string]float64{}
	for i := range set.List {
		x := &set.List[i]
		if x.Metric == series.ServerErrors || x.Metric == series.Refused {
			for v := range set.Each(i) {
				got[set.Servers[set.Places[x.Place].Server].Name+" "+set.Metric(x.Metric).Name] += v.Value
			}
		}
	}
	if want := (map[string]float64{"10.0.0.10:29000 server errors": 26, "10.0.0.10:29000 refused": 5, "llm server errors": 4}); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	var events []string
	for _, x := range set.Instants {
		events = append(events, fmt.Sprintf("%d %s %s", (int64(x.Time)/1e9-1787007200)/15, set.Servers[set.Places[x.Place].Server].Name, x.Kind))
	}
	slices.Sort(events)
	if want := []string{"1 10.0.1.2:30000 unrouted", "1 10.0.1.4:30000 unrouted", "3 10.0.1.2:30000 routed"}; !slices.Equal(events, want) {
		t.Errorf("%v, want %v", events, want)
	}
}
