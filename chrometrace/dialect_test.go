package chrometrace

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
	"github.com/sgtrace/sgtrace/profile"
)

// dialects has one case per producer and era. Times are in ns.
var dialects = []struct {
	name, data string
	events     string // row, category, name, time, and duration of each
	codes      string
}{
	{"base before", `{"schemaVersion":1,"baseTimeNanoseconds":1775078550000000000,"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":2,"ts":100.007,"dur":5.000}],"traceName":"x"}`,
		"T||1|2 cpu_op a 1775078550000100007+5000", ""},
	{"base behind", `{"schemaVersion":1,"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":2,"ts":100.007,"dur":5.000}],"baseTimeNanoseconds":1775078550000000000}`,
		"T||1|2 cpu_op a 1775078550000100007+5000", ""},
	{"integer microseconds", `{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":2,"ts":1694039968933321,"dur":41602354}]}`,
		"T||1|2 cpu_op a 1694039968933321000+41602354000", ""},
	{"absolute with a fraction", `{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":2,"ts":1712195495406752.797,"dur":0.5}]}`,
		"T||1|2 cpu_op a 1712195495406752797+500", ""},
	{"relative to nothing", `{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":2,"ts":0,"dur":1}]}`,
		"T||1|2  a 0+1000", "trace-no-base@0"},
	{"times as text", `[{"ph":"X","name":"a","pid":1,"tid":2,"ts":"1694039968933321.25","dur":"1.5"}]`,
		"T||1|2  a 1694039968933321250+1500", ""},
	{"exponents", `[{"ph":"X","name":"a","pid":1,"tid":2,"ts":1.694039968933321e15,"dur":15e-1}]`,
		"T||1|2  a 1694039968933321000+1500", ""},
	{"rounding", `[{"ph":"X","name":"a","pid":1,"tid":2,"ts":1694039968933321.0004999,"dur":0.0005}]`,
		"T||1|2  a 1694039968933321000+1", ""},
	{"a list without end", `[{"ph":"X","name":"a","pid":1,"tid":2,"ts":1694039968933321,"dur":1},` + "\n",
		"T||1|2  a 1694039968933321000+1000", ""},
	{"keys in any order", `[{"args":{"x":1},"ts":1694039968933321,"tid":2,"pid":1,"name":"a","dur":1,"cat":"kernel","ph":"X"}]`,
		"S||1|2 kernel a 1694039968933321000+1000", ""},
	{"no tid, no pid", `[{"ph":"X","name":"a","pid":4,"ts":1694039968933321,"dur":1},{"ph":"X","name":"b","ts":1694039968933321,"dur":1}]`,
		"T||4|4  a 1694039968933321000+1000\nT||0|0  b 1694039968933321000+1000", ""},
	{"no duration", `[{"ph":"X","name":"a","pid":4,"tid":4,"ts":1694039968933321}]`,
		"T||4|4  a 1694039968933321000+0", ""},
	{"a negative duration", `[{"ph":"X","name":"a","pid":4,"tid":4,"ts":1694039968933321,"dur":-1}]`,
		"T||4|4  a 1694039968933321000+0", "trace-negative-duration@1"},
	{"before 2022", `{"traceEvents":[{"ph":"X","cat":"Operator","name":"a","pid":24572,"tid":"24572","ts":1621401187223197,"dur":1},
		{"ph":"X","cat":"Runtime","name":"b","pid":24572,"tid":"24572","ts":1621401187223198,"dur":1},{"ph":"X","cat":"Kernel","name":"c","pid":0,"tid":"stream 7","ts":1621401187223199,"dur":1},
		{"ph":"X","cat":"Memcpy","name":"d","pid":0,"tid":"stream 7","ts":1621401187223200,"dur":1},{"ph":"X","cat":"Memset","name":"e","pid":0,"tid":"stream 7","ts":1621401187223201,"dur":1}]}`,
		"T||24572|24572 cpu_op a 1621401187223197000+1000\nT||24572|24572 cuda_runtime b 1621401187223198000+1000\nS||0|stream 7 kernel c 1621401187223199000+1000\n" +
			"S||0|stream 7 gpu_memcpy d 1621401187223200000+1000\nS||0|stream 7 gpu_memset e 1621401187223201000+1000", ""},
	{"merged by SGLang", `{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a", "pid": "[TP00-DP01] 0", "tid": 7, "ts": 1694039968933321, "dur": 1},
		{"ph": "X", "cat": "cpu_op", "name": "b", "pid": "[TP01-DP01] 1251", "tid": 1251, "ts": 1694039968933321, "dur": 1}], "distributedInfo": {"rank": 0}}`,
		"S|TP00-DP01|0|7 kernel a 1694039968933321000+1000\nT|TP01-DP01|1251|1251 cpu_op b 1694039968933321000+1000", ""},
	{"a thread and a stream of one number", `[{"ph":"X","cat":"python_function","name":"a","pid":0,"tid":0,"ts":1694039968933321,"dur":1},{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":0,"ts":1694039968933321,"dur":1}]`,
		"T||0|0 python_function a 1694039968933321000+1000\nS||0|0 kernel b 1694039968933321000+1000", ""},
	{"rows of text", `[{"ph":"X","cat":"Trace","name":"a","pid":"Spans","tid":"PyTorch Profiler","ts":1694039968933321,"dur":1},{"ph":"X","name":"b","pid":"","tid":"","ts":1694039968933321,"dur":1},{"ph":"X","name":"c","pid":"scheduler","tid":"req 1","ts":1694039968933321,"dur":1}]`,
		"O||Spans|PyTorch Profiler Trace a 1694039968933321000+1000\nO|||  b 1694039968933321000+1000\nT||scheduler|req 1  c 1694039968933321000+1000", ""},
	{"two documents", `{"baseTimeNanoseconds":1000000000000000000,"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}]}` + "\n" +
		"\ufeff" + `{"traceEvents":[{"ph":"X","name":"b","pid":1,"tid":1,"ts":1,"dur":1}],"baseTimeNanoseconds":1100000000000000000}`,
		"T||1|1  a 1000000000000001000+1000\nT||1|1  b 1100000000000001000+1000", ""},
	{"events without a list", "{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1694039968933321,\"dur\":1},\n{\"ph\":\"X\",\"name\":\"b\",\"pid\":1,\"tid\":1,\"ts\":1694039968933322,\"dur\":1}\n",
		"T||1|1  a 1694039968933321000+1000\nT||1|1  b 1694039968933322000+1000", ""},
	{"escapes", `[{"\u0070h":"\u0058","name":"\u00e9\ud83d\ude00\"","cat":"c\/d","pid":1,"tid":1,"ts":1694039968933321,"dur":1}]`,
		"T||1|1 c/d é😀\" 1694039968933321000+1000", ""},
	{"unknown phase", `[{"ph":"Q","ts":1},{"ph":"c","ts":1},{"name":"x"},{"name":"x","ts":1},{"ph":"X","name":"a","pid":1,"tid":1,"ts":1694039968933321,"dur":1}]`,
		"T||1|1  a 1694039968933321000+1000", "trace-no-such-phase@1 trace-unknown-phase@19 trace-not-an-event@37 trace-no-phase@50"},
	{"things among events", `[null,1,"x",[{}],{"ph":"X","name":"a","pid":1,"tid":1,"ts":1694039968933321,"dur":1}]`,
		"T||1|1  a 1694039968933321000+1000", "trace-not-an-event@1*4"},
	{"an empty object behind the last event", `{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1694039968933321,"dur":1},{ }]}`, "T||1|1  a 1694039968933321000+1000", ""},
	{"objects that are no events", `[{},{"x":{}},{"args":{}},{"ph":"X","name":"a","pid":1,"tid":1,"ts":1694039968933321,"dur":1}]`, "T||1|1  a 1694039968933321000+1000", "trace-not-an-event@4*2"},
	{"other members", `{"stackFrames":{"1":{"name":"x"}},"systemTraceEvents":"ab","samples":[{"ts":1,"name":"no"}],"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1694039968933321,"dur":1}],"otherData":{"a":[1]}}`,
		"T||1|1  a 1694039968933321000+1000", ""},
	{"clock that failed", `{"schemaVersion":1,"baseTimeNanoseconds":1775078550000000000,"traceEvents":[{"ph":"X","cat":"kernel","name":"a","pid":1,"tid":1,"ts":0.000,"dur":1,"args":{"correlation":5}},{"ph":"X","cat":"kernel","name":"b","pid":1,"tid":1,"ts":1.000,"dur":1,"args":{"correlation":6}}]}`,
		"S||1|1 kernel b 1775078550000001000+1000", "trace-clock-zero@76"},
	{"not a clock that failed", `{"baseTimeNanoseconds":1775078550000000000,"traceEvents":[{"ph":"X","cat":"kernel","name":"a","pid":1,"tid":1,"ts":0.000,"dur":1}]}`,
		"S||1|1 kernel a 1775078550000000000+1000", ""},
	{"no time", `[{"ph":"X","name":"a","pid":1,"tid":1},{"ph":"X","name":"b","pid":1,"tid":1,"ts":null},{"ph":"X","name":"c","pid":1,"tid":1,"ts":1694039968933321}]`,
		"T||1|1  c 1694039968933321000+0", "trace-no-time@1*2"},
}

func TestDialects(t *testing.T) {
	for _, c := range dialects {
		t.Run(c.name, func(t *testing.T) {
			r := parsed(t, c.data)
			var got []string
			for _, e := range r.Events {
				row := r.Rows[e.Place.Row()]
				kind := [...]string{"T", "S", "A", "C", "O"}[row.Kind]
				got = append(got, fmt.Sprintf("%s|%s|%s|%s %s %s %d+%d", kind, row.Part, row.PIDText, row.TIDText, r.name(e.Cat), r.name(e.Name), e.Time, e.Dur))
			}
			if d := diff(got, strings.Split(c.events, "\n")); d != "" {
				t.Error(d)
			}
			if r.codes() != c.codes {
				t.Errorf("diagnostics %v, want %q", r.diags, c.codes)
			}
		})
	}
}

const abs = `"ts":1694039968933321` // an absolute time

func TestMeta(t *testing.T) {
	r := parsed(t, `{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "H100", "numSms": 132}, {"id": 1, "name": ""}], "cuda_runtime_version": 12090,
		"distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8, "pg_count": 2, "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": 2, "ranks": [0, 1]},
		{"pg_name": "1", "pg_desc": "tp", "ranks": "[2, 3]"}], "nccl_version": "2.17"}, "host_name": "node0", "trace_id": "AB", "with_stack": true,
		"baseTimeNanoseconds": 5000, "traceEvents": [], "vllm_version": "0.1\n", "x": null}`)
	want := `meta {Origin:1 Epoch: Base:5000 Until:1970-01-01T00:00:00.000000000Z Blur:0 Rank:3 WorldSize:8 Host:node0 Backend:nccl HostGroup:0 Parts:map[] ` +
		`Devices:[{ID:0 Name:H100 UUID:} {ID:1 Name: UUID:}] Recorded:[stacks] PID:0 OnGPU:false Hints:[] GPU:-1 Attributes:[{Key:schemaVersion Value:1} {Key:cuda_runtime_version Value:12090} {Key:trace_id Value:AB} ` +
		`{Key:with_stack Value:true} {Key:vllm_version Value:0.1` + "\n" + `} {Key:x Value:null}]} 0 0 0`
	if d := diff(r.everything(), []string{want}); d != "" {
		t.Error(d)
	}
	for _, odd := range []string{`{"rank": 3, "pg_config": {}}`, `{"pg_config": null, "rank": 3}`, `{"rank":3,"pg_config":[{"ranks":null}]}`} {
		if r := parsed(t, `{"traceEvents":[], "distributedInfo": `+odd+`}`); r.Meta.Rank != 3 || r.Meta.WorldSize != -1 || len(r.diags) > 0 {
			t.Errorf("%s: %+v %v", odd, r.Meta, r.diags)
		}
	}
	r = parsed(t, `{"distributedInfo": {"rank": "three", "world_size": 8}, "traceEvents":[]}`)
	if r.Meta.Rank != -1 || r.Meta.WorldSize != 8 || r.codes() != "trace-header@20" {
		t.Errorf("%+v %v", r.Meta, r.diags)
	}
	if r := parsed(t, `{"distributedInfo": {"rank": ""}, "traceEvents":[]}`); r.Meta.Rank != -1 || len(r.diags) > 0 {
		t.Errorf("%+v %v", r.Meta, r.diags)
	}
	if r := parsed(t, dialects[14].data); r.Meta.Rank != -1 {
		t.Errorf("a merged file is of rank %d", r.Meta.Rank)
	}
}

func TestRowNames(t *testing.T) {
	r := parsed(t, `[{"ph":"i","name":"x","pid":0,"tid":7,`+abs+`},{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,`+abs+`,"dur":1},
		{"name":"process_name","ph":"M","ts":0,"pid":0,"tid":0,"args":{"name":"python3"}},{"name":"process_labels","ph":"M","pid":0,"tid":0,"args":{"labels":"GPU 0"}},
		{"name":"process_sort_index","ph":"M","pid":0,"tid":0,"args":{"sort_index":5000000}},{"name":"thread_name","ph":"M","pid":0,"tid":7,"args":{"name":"stream 7 "}},
		{"name":"thread_sort_index","ph":"M","pid":0,"tid":7,"args":{"sort_index":7}},{"name":"thread_name","ph":"M","pid":0,"tid":9,"args":{"name":"stream 9 "}},
		{"name":"process_name","ph":"M","pid":1,"tid":0,"args":{"name":"nobody"}},{"name":"thread_name","ph":"M","pid":0,"tid":7,"args":{"name":""}},{"name":"num_cpus","ph":"M","pid":0}]`)
	want := []string{
		`{Kind:1 Part: PID:0 TID:7 PIDText:0 TIDText:7 Process:python3 Name:stream 7  Labels:GPU 0 ProcessSort:5000000 Sort:7 Folder: Unit:}`,
		`{Kind:1 Part: PID:0 TID:9 PIDText:0 TIDText:9 Process:python3 Name:stream 9  Labels:GPU 0 ProcessSort:5000000 Sort:0 Folder: Unit:}`,
	}
	var got []string
	for _, row := range r.Rows {
		got = append(got, fmt.Sprintf("%+v", row))
	}
	if d := diff(got, want); d != "" || r.Instants[0].Row != 0 || r.Events[0].Place.Row() != 0 || r.Total != 2 {
		t.Error(d, r.records())
	}
}

// A thread without a name is named after its tid if that is text.
func TestRowNamesFromText(t *testing.T) {
	r := parsed(t, `[{"ph":"X","cat":"Kernel","name":"a","pid":0,"tid":"stream 7",`+abs+`},{"ph":"X","name":"b","pid":1,"tid":"main thread",`+abs+`},
		{"ph":"X","name":"c","pid":1,"tid":"24572",`+abs+`},{"ph":"X","name":"d","pid":1,"tid":-3,`+abs+`},{"ph":"X","name":"e","pid":1,"tid":"io",`+abs+`},
		{"ph":"X","name":"f","pid":"Spans","tid":"PyTorch Profiler",`+abs+`},{"ph":"X","name":"g","pid":2,"tid":"",`+abs+`},{"ph":"b","cat":"c","name":"h","id":1,"pid":"x","tid":"y",`+abs+`},
		{"ph":"M","name":"thread_name","pid":1,"tid":"io","args":{"name":"disk"}}]`)
	var got []string
	for _, row := range r.Rows {
		got = append(got, row.TIDText+"="+row.Name)
	}
	if d := diff(got, []string{"stream 7=stream 7", "main thread=main thread", "24572=", "-3=", "io=disk", "PyTorch Profiler=PyTorch Profiler", "=", "=h"}); d != "" {
		t.Error(d)
	}
	if r.Rows[0].Kind != profile.RowStream || r.Rows[0].TID != 7 {
		t.Errorf("%+v", r.Rows[0])
	}
}

func TestPairs(t *testing.T) {
	at := func(us int) string { return fmt.Sprintf(`"ts":1694039968933%03d`, us) }
	for _, c := range []struct{ name, data, want, codes string }{
		{"nested", `[{"ph":"B","cat":"c","name":"a","pid":1,"tid":1,` + at(1) + `,"args":{"x":1,"y":2}},{"ph":"B","name":"b","pid":1,"tid":1,` + at(2) + `},{"ph":"B","name":"other","pid":1,"tid":2,` + at(2) + `},
			{"ph":"E","pid":1,"tid":1,` + at(4) + `},{"ph":"E","pid":1,"tid":1,` + at(9) + `,"args":{"x":3}},{"ph":"E","pid":1,"tid":2,` + at(3) + `}]`,
			"a@1+8{\"x\":3,\"x\":1,\"y\":2} b@2+2{} other@2+1{}", ""},
		{"end without begin", `[{"ph":"E","pid":1,"tid":1,` + at(4) + `}]`, "", "trace-unmatched-end@1"},
		{"begin without end", `[{"ph":"B","name":"a","pid":1,"tid":1,` + at(1) + `},{"ph":"X","name":"x","pid":2,"tid":1,` + at(2) + `,"dur":5}]`, "a@1+6{} x@2+5{}", "trace-open-slice@1"},
		{"ends before it begins", `[{"ph":"B","name":"a","pid":1,"tid":1,` + at(5) + `},{"ph":"E","pid":1,"tid":1,` + at(4) + `}]`, "a@5+0{}", "trace-negative-duration@61"},
		{"async", `[{"ph":"b","cat":"r","name":"a","id":1,"pid":1,` + at(1) + `},{"ph":"b","cat":"r","name":"a","id":2,"pid":1,` + at(2) + `},{"ph":"b","cat":"q","name":"a","id":1,"pid":1,` + at(3) + `},
			{"ph":"e","cat":"r","name":"a","id":1,"pid":1,` + at(4) + `},{"ph":"n","cat":"r","name":"i","id":2,"pid":1,` + at(4) + `},{"ph":"e","cat":"r","name":"a","id":2,"pid":1,` + at(6) + `},{"ph":"e","cat":"q","name":"a","id":1,"pid":1,` + at(8) + `}]`,
			"a@1+3{} a@2+4{} a@3+5{} 3 rows, 1 instants", ""},
		{"async of other kinds of ids", `[{"ph":"b","cat":"r","name":"a","id2":{"local":"0x1"},"pid":1,` + at(1) + `},{"ph":"b","cat":"r","name":"b","id2":{"local":"0x1"},"pid":2,` + at(2) + `},{"ph":"b","cat":"r","name":"c","id2":{"global":"0x1"},"pid":1,` + at(3) + `},
			{"ph":"e","cat":"r","name":"c","id2":{"global":"0x1"},"pid":2,` + at(4) + `},{"ph":"e","cat":"r","name":"b","id2":{"local":"0x1"},"pid":2,` + at(5) + `},{"ph":"e","cat":"r","name":"a","id2":{"local":"0x1"},"pid":1,` + at(6) + `}]`,
			"a@1+5{} b@2+3{} c@3+1{} 3 rows, 0 instants", ""},
		{"async of one id overlap", `[{"ph":"b","cat":"r","name":"a","id":"x","pid":1,` + at(1) + `},{"ph":"b","cat":"r","name":"b","id":"x","pid":1,` + at(2) + `},{"ph":"e","cat":"r","name":"a","id":"x","pid":1,` + at(5) + `},{"ph":"e","cat":"r","name":"b","id":"x","pid":1,` + at(9) + `}]`,
			"a@1+4{} b@2+7{} 1 rows, 0 instants", ""},
		{"legacy async", `[{"ph":"S","cat":"r","name":"a","id":1,"pid":1,"tid":3,` + at(1) + `},{"ph":"T","cat":"r","name":"a","id":1,"pid":1,"tid":3,` + at(2) + `},{"ph":"F","cat":"r","name":"a","id":1,"pid":1,"tid":4,` + at(5) + `}]`,
			"a@1+4{} 1 rows, 1 instants", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := parsed(t, c.data)
			var got []string
			for _, e := range r.Events {
				got = append(got, fmt.Sprintf("%s@%d+%d%s", r.name(e.Name), (int64(e.Time)-1694039968933000000)/1000, e.Dur/1000, r.plainArgs(e.Args)))
			}
			if strings.Contains(c.name, "async") {
				got = append(got, fmt.Sprintf("%d rows, %d instants", len(r.Rows), len(r.Instants)))
				if r.Rows[0].Kind != profile.RowAsync || r.Rows[0].Name != "a" {
					t.Errorf("the row is %+v", r.Rows[0])
				}
			}
			if text := strings.Join(got, " "); text != c.want || r.codes() != c.codes {
				t.Errorf("got %s %v\nwant %s %s", text, r.diags, c.want, c.codes)
			}
		})
	}
}

func TestCounters(t *testing.T) {
	r := parsed(t, `[{"ph":"C","name":"mem","pid":1,`+abs+`,"args":{"used":5,"free":"7.5","junk":"x","no":null}},{"ph":"C","name":"mem","pid":1,`+abs+`,"args":{"used":6}},
		{"ph":"C","name":"mem","id":"1","pid":1,`+abs+`,"args":{"used":8}},{"args":{"":2.5},"ph":"C","name":"SM Active","pid":"GPU 0 Counters",`+abs+`},
		{"ph":"C","name":"mem","id2":{"local":"0x2"},"pid":1,`+abs+`,"args":{"value":9}}]`)
	var got []string
	for _, s := range r.Samples {
		got = append(got, fmt.Sprintf("%d %s=%v", s.Row, r.Rows[s.Row].Name, s.Value))
	}
	if d := diff(got, []string{"0 mem used=5", "1 mem free=7.5", "0 mem used=6", "2 mem [1] used=8", "3 SM Active=2.5", "4 mem [0x2]=9"}); d != "" {
		t.Error(d)
	}
	if r.codes() != "trace-counter-value@1" || r.Rows[3].Kind != profile.RowCounter || r.Rows[3].PIDText != "GPU 0 Counters" || r.Total != 5 {
		t.Errorf("%v %+v", r.diags, r.Rows)
	}
}

func TestArrows(t *testing.T) {
	flows := `{"ph":"s","id":1,"pid":1,"tid":1,` + abs + `,"cat":"fwdbwd","name":"fwdbwd"},{"ph":"f","id":"1","pid":1,"tid":2,` + abs + `,"cat":"fwdbwd","name":"fwdbwd","bp":"e"},{"ph":"s","id":9,"pid":1,"tid":1,` + abs + `,"cat":"ac2g","name":"ac2g"}`
	r := parsed(t, `[`+flows+`]`)
	want := []string{`s ["" "1" "1"] "fwdbwd" "fwdbwd" "1" 1694039968933321000 false -1`, `f ["" "1" "2"] "fwdbwd" "fwdbwd" "1" 1694039968933321000 true -1`,
		`s ["" "1" "1"] "ac2g" "ac2g" "9" 1694039968933321000 false -1`}
	if d := diff(r.records(), want); d != "" {
		t.Error(d)
	}
	launch := `{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,` + abs + `,"dur":1,"args":{"correlation":9}}`
	for _, data := range []string{`[` + launch + `,` + flows + `]`, `[` + flows + `,` + launch + `]`} {
		if r := parsed(t, data); len(r.Arrows) != 2 || !r.Events[0].IsLaunch() {
			t.Errorf("%q", r.records())
		}
	}
}

// If no event has a correlation, an "External id" that only one call has identifies its launch; one
// that several calls have identifies an operator.
func TestExternalIDs(t *testing.T) {
	event := func(cat, id string) string {
		return `{"ph":"X","cat":"` + cat + `","name":"x","pid":1,"tid":1,` + abs + `,"dur":1,"args":{` + id + `}}`
	}
	for _, c := range []struct {
		events string
		want   []int64
	}{
		{event("cuda_runtime", `"External id":4`) + "," + event("kernel", `"External id":4`) + "," + event("cuda_runtime", `"External id":5`) + "," + event("kernel", `"External id":6`), []int64{4, 4, 0, 0}},
		{event("cuda_runtime", `"External id":4`) + "," + event("kernel", `"External id":4`) + "," + event("cuda_runtime", `"External id":4`), []int64{0, 0, 0}},
		{event("cuda_runtime", `"External id":4`) + "," + event("kernel", `"External id":4`) + "," + event("kernel", `"External id":4,"correlation":9`), []int64{0, 0, 9}},
	} {
		r, got := parsed(t, "["+c.events+"]"), []int64{}
		for i := range r.Events {
			got = append(got, r.Events[i].Correlation)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}

// Arrows may be given by flow ids within the slices.
func TestBoundArrows(t *testing.T) {
	slice := func(ph, cat, more string) string {
		return `{"ph":"` + ph + `","cat":"` + cat + `","name":"x","id":5,"pid":1,"tid":1,` + abs + `,"dur":2` + more + `}`
	}
	data := `[` + slice("X", "a", "") + `,` + slice("X", "a", `,"bind_id":7,"flow_out":true`) + `,` + slice("X", "b", `,"bind_id":"7","flow_in":true,"flow_out":true`) + `,
		` + slice("B", "b", `,"flow_in":1,"flow_out":false,"bind_id":"0x7"`) + `,` + slice("E", "b", `,"bind_id":7,"flow_in":true`) + `,` + slice("b", "c", `,"bind_id":8,"flow_out":"true"`) + `,
		` + slice("X", "a", `,"bind_id":9`) + `,` + slice("X", "a", `,"flow_out":true`) + `,` + slice("X", "a", `,"bind_id":null,"flow_out":true`) + `,` + slice("X", "a", `,"bind_id":9,"flow_out":null,"flow_in":0`) + `]`
	for _, c := range []struct {
		filter profile.Filter
		want   []string
	}{
		{profile.Filter{}, []string{`s 7 1`, `t 7 2`, `f 0x7 3`, `s 8 4`}},
		{profile.Filter{Cats: []string{"b"}}, []string{`t 7 0`, `f 0x7 1`}},
		{profile.Filter{MinDur: 1}, []string{`s 7 1`, `t 7 2`, `s 8 3`}}, // a pair has no duration
		{profile.Filter{IndexOnly: true}, nil},
	} {
		r := readWith(Options{Workers: 1, Filter: c.filter}, parse.Usual, same, []byte(data[:len(data)-1]+`,{"ph":"i","name":"last",`+strings.Replace(abs, "321", "399", 1)+`}]`))
		var got []string
		for _, a := range r.Arrows {
			got = append(got, fmt.Sprintf("%c %s %d", a.Phase, r.name(a.ID), a.Event))
			if a.Cat != 0 || a.Name != 0 || !a.Enclosing || a.Time != r.Events[a.Event].Time || a.Row != r.Events[a.Event].Place.Row() {
				t.Errorf("%+v of %+v", a, r.Events[a.Event])
			}
		}
		if d := diff(got, c.want); d != "" {
			t.Errorf("%+v: %s", c.filter, d)
		}
	}
}

func TestArguments(t *testing.T) {
	for in, want := range map[string]string{
		`{}`:                          `{}`,
		`null`:                        `{}`,
		`[1]`:                         `{}`,
		`{"a":1,"b":-1,"c":0,"d":-0}`: `{"a":1,"b":-1,"c":0,"d":0}`,
		`{"a":9223372036854775807,"b":-9223372036854775808,"c":18446744073709551557}`:              `{"a":9223372036854775807,"b":-9223372036854775808,"c":18446744073709551557}`,
		`{"a":18446744073709551616,"b":1.0,"c":1e3,"d":1e999,"e":-0.5E-2}`:                         `{"a":"18446744073709551616","b":1f,"c":1000f,"d":"1e999","e":-0.005f}`,
		`{"a":-9223372036854775809,"b":123456789012345678901234567890,"c":[18446744073709551616]}`: `{"a":"-9223372036854775809","b":"123456789012345678901234567890","c":["18446744073709551616"]}`,
		`{"a":1,"b":2,"a":3}`: `{"b":2,"a":3}`,
		`{"a":{"x":1,"x":2},"b":[1],"c":true,"d":"t","e":1.5,"f":18446744073709551615,"g":{},"a":-1,"\u0061":9,"h":{"y":[2]}}`: `{"b":[1],"c":true,"d":"t","e":1.5f,"f":18446744073709551615,"g":{},"a":9,"h":{"y":[2]}}`,
		`{"\u0061":1,"a":2}`:                        `{"a":2}`,
		`{"a":1,"a":null}`:                          `{"a":1}`,
		`{"a":true,"b":false,"c":null,"d":""}`:      `{"a":true,"b":false,"d":""}`,
		`{"a":[1,[2,[]],{},{"b":[null,"x"]}]}`:      `{"a":[1,[2,[]],{},{"b":["x"]}]}`,
		`{"\u0061\"":"x\ny\ud83d\ude00\ud83d\\"}`:   `{"a\"":"x\ny😀�\\"}`,
		` { "a" : [ 1 , 2 ] , "b" : { "c" : 3 } } `: `{"a":[1,2],"b":{"c":3}}`,
		`{"a":"` + strings.Repeat("x", 300) + `","l":[` + strings.Repeat("1,", 200) + `[` + strings.Repeat("2,", 20000) + `2]]}`: `{"a":"` + strings.Repeat("x", 300) + `","l":[` + strings.Repeat("1,", 200) + `[` + strings.Repeat("2,", 20000) + `2]]}`,
	} {
		r := parsed(t, `[{"ph":"X","name":"a",`+abs+`,"args":`+in+`},{"args":`+in+`,"ph":"X",`+abs+`,"name":"b"}]`)
		if len(r.Events) != 2 || len(r.diags) > 0 {
			t.Errorf("%.80s: %v", in, r.diags)
			continue
		}
		for _, e := range r.Events {
			if got := r.plainArgs(e.Args); got != want {
				t.Errorf("%.80s: got %.200s, want %.200s", in, got, want)
			}
		}
	}
}

func TestNoTrace(t *testing.T) {
	for _, data := range []string{"", " ", "hello", "{}", `{"a":1}`, "[1,2]", "\x00\x01", `{"resourceSpans":[{"name":"x"}]}`} {
		if r := readWith(Options{}, parse.Usual, same, []byte(data)); !errors.Is(r.err, errNoTrace) {
			t.Errorf("%q: %v", data, r.err)
		}
		if sniff([]byte(data)) {
			t.Errorf("%q looks like a trace", data)
		}
	}
	broken := errors.New("broken pipe")
	r := readWith(Options{}, parse.Usual, func(io.Reader) io.Reader { return iotest.ErrReader(broken) }, nil)
	if !errors.Is(r.err, broken) {
		t.Error(r.err)
	}
	// Everything read before an error is kept.
	data := dialects[0].data
	r = readWith(Options{}, parse.Usual, func(r io.Reader) io.Reader { return io.MultiReader(r, iotest.ErrReader(io.ErrUnexpectedEOF)) }, []byte(data[:len(data)-17]))
	if r.err != nil || len(r.Events) != 1 || r.codes() != fmt.Sprintf("trace-truncated@%d", len(data)-17) {
		t.Error(r.err, r.diags)
	}
}

func TestSniff(t *testing.T) {
	for _, c := range dialects {
		if !sniff([]byte(c.data)) && c.name != "escapes" {
			t.Errorf("%s: not recognized", c.name)
		}
	}
	for _, head := range []string{`{"schemaVersion": 1, "distributedInfo": {"pg_config": [`, `"tid": 3}, {"ph": "X", "cat": "x"`} {
		if !sniff([]byte(head)) {
			t.Errorf("%q: not recognized", head)
		}
	}
	for _, notes := range []string{"# Traces\nEvents are `{\"ph\": \"X\", \"name\": \"a\", \"ts\": 1, \"dur\": 2}`.", "Both `[...]` and `{\"traceEvents\":[...]}` are read."} {
		if sniff([]byte(notes)) {
			t.Errorf("%q: taken for a trace", notes)
		}
	}
}
