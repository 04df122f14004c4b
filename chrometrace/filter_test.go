package chrometrace

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
	"github.com/sgtrace/sgtrace/profile"
)

// filterDoc has four slices, an instant, a counter, an arrow, a pair and a step.
const filterDoc = `{"baseTimeNanoseconds":1775078550000000000,"traceEvents":[
{"ph":"X","cat":"cpu_op","name":"op","pid":1,"tid":1,"ts":10.000,"dur":5.000,"args":{"Input Dims":[[1]],"Ev Idx":3}},
{"ph":"X","cat":"cuda_runtime","name":"launch","pid":1,"tid":1,"ts":11.000,"dur":1.000,"args":{"cbid":211,"correlation":7}},
{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"tid":7,"ts":20.000,"dur":30.000,"args":{"correlation":7,"queued":0,"Collective name":"allreduce","Seq":4}},
{"ph":"X","cat":"user_annotation","name":"step[DECODE bs=32]","pid":1,"tid":1,"ts":9.000,"dur":50.000},
{"ph":"i","cat":"cpu_instant_event","name":"memory","pid":1,"tid":1,"ts":30.000},
{"ph":"C","cat":"hardware_counters","name":"SM","pid":9,"ts":40.000,"args":{"":1}},
{"ph":"s","cat":"fwdbwd","name":"fwdbwd","id":1,"pid":1,"tid":1,"ts":10.000},
{"ph":"B","cat":"pair","name":"short","pid":1,"tid":2,"ts":60.000},{"ph":"B","cat":"pair","name":"shorter","pid":1,"tid":2,"ts":60.500},
{"ph":"E","pid":1,"tid":2,"ts":61.000},{"ph":"E","pid":1,"tid":2,"ts":69.000},
{"ph":"X","cat":"gpu_memcpy","name":"copy","pid":0,"tid":8,"ts":70.000,"dur":2.000,"args":{"correlation":9}}]}`

func TestFilters(t *testing.T) {
	const base = 1775078550000000000
	all := "op launch ncclDevKernel_AllReduce step[DECODE bs=32] short shorter copy"
	for _, c := range []struct {
		name   string
		filter profile.Filter
		events string
		others string // number of instants, samples, and arrows
	}{
		{"nothing", profile.Filter{}, all, "1 1 1"},
		{"categories", profile.Filter{Cats: []string{"KERNEL", "fwdbwd"}}, "ncclDevKernel_AllReduce", "0 0 1"},
		{"none", profile.Filter{Cats: []string{}}, "", "0 0 0"},
		{"names", profile.Filter{Names: regexp.MustCompile(`^(op|mem)|short$`)}, "op short", "1 0 0"},
		{"duration", profile.Filter{MinDur: 5000}, "op ncclDevKernel_AllReduce step[DECODE bs=32] short", "1 1 1"},
		{"from", profile.Filter{From: base + 50_000}, "ncclDevKernel_AllReduce step[DECODE bs=32] short shorter copy", "0 0 0"},
		{"to", profile.Filter{To: base + 11_000}, "op launch step[DECODE bs=32]", "0 0 1"},
		{"both", profile.Filter{From: base + 61_000, To: base + 69_000}, "short shorter", "0 0 0"},
		{"index only", profile.Filter{IndexOnly: true}, "", "0 0 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := readWith(Options{Workers: 1, Filter: c.filter}, parse.Usual, same, []byte(filterDoc))
			if r.err != nil || len(r.diags) > 0 {
				t.Fatal(r.err, r.diags)
			}
			if r.names() != c.events {
				t.Errorf("events %q, want %q", r.names(), c.events)
			}
			if got := fmt.Sprint(len(r.Instants), len(r.Samples), len(r.Arrows)); got != c.others {
				t.Errorf("%s instants, samples and arrows, want %s", got, c.others)
			}
			// Filtered events still count in the tables.
			if r.First != base+9000 || r.Last != base+72000 || r.Total != 12 || len(r.Rows) != 5 {
				t.Errorf("%d events of %d rows in [%d, %d]", r.Total, len(r.Rows), r.First, r.Last)
			}
			if r.Collectives.Len() != 1 || len(r.Steps) != 1 {
				t.Fatalf("%v %v", r.Collectives, r.Steps)
			}
			for name, event := range map[string]int32{"ncclDevKernel_AllReduce": r.Collectives.At(0).Event, "step[DECODE bs=32]": r.Steps[0].Event} {
				if kept := strings.Contains(" "+c.events+" ", " "+name+" "); kept != (event != profile.NoEvent) || kept && r.name(r.Events[event].Name) != name {
					t.Errorf("event %d is not %s", event, name)
				}
			}
		})
	}
}

func TestArgsModes(t *testing.T) {
	for mode, want := range map[profile.ArgsMode][]string{
		profile.ArgsAll:  {`{"Input Dims":[[1]],"Ev Idx":3}`, `{"cbid":211,"correlation":7}`},
		profile.ArgsMin:  {`{"Input Dims":[[1]]}`, `{"correlation":7}`},
		profile.ArgsNone: {`{}`, `{}`},
	} {
		r := readWith(Options{Filter: profile.Filter{Args: mode}}, parse.Usual, same, []byte(filterDoc))
		for i, w := range want {
			if got := r.plainArgs(r.Events[i].Args); got != w {
				t.Errorf("mode %d: %s, want %s", mode, got, w)
			}
		}
		if len(r.Samples) != 1 || r.Samples[0].Value != 1 || r.Collectives.At(0).Seq != 4 {
			t.Errorf("mode %d: %v %v", mode, r.Samples, r.Collectives)
		}
	}
}

// With the base found in a first pass, a second pass gets the times right in a file whose base
// comes after its events.
func TestFilterWithBaseBehind(t *testing.T) {
	data := `{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":10,"dur":1},{"ph":"X","name":"b","pid":1,"tid":1,"ts":20,"dur":1}],"baseTimeNanoseconds":1775078550000000000}`
	first := parsed(t, data)
	f := profile.Filter{From: first.Events[1].Time}
	if r := readWith(Options{Filter: f, Base: first.Meta.Base}, parse.Usual, same, []byte(data)); r.names() != "b" || r.Events[0].Time != first.Events[1].Time {
		t.Errorf("%s", r.events())
	}
	// Only the caller knows the base.
	r := readWith(Options{Base: 5e9}, parse.Usual, same, []byte(`[{"ph":"X","name":"a","ts":10}]`))
	if r.Events[0].Time != 5e9+10_000 || r.Meta.Origin != profile.OriginUnix || len(r.diags) > 0 {
		t.Errorf("%s %v", r.events(), r.diags)
	}
}
