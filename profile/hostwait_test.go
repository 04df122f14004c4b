package profile

import (
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// A host collective begins when its thread has finished waiting for the device, and holds up the calling thread unless
// that calls the runtime meanwhile. Device collectives, and those without a calling thread, are unchanged.
func TestSettleHosts(t *testing.T) {
	syms := trace.NewSymbols()
	const asks, gloo, other = 0, 1, 2 // rows
	sync := func(at trace.Time, dur int64) CollectiveAnnotation {
		return CollectiveAnnotation{Row: gloo, Time: at, Dur: dur}
	}
	for _, c := range []struct {
		name, of  string
		onGPU     bool
		callers   []CollectiveAnnotation
		calls     []Launch
		syncs     []CollectiveAnnotation
		held      bool
		begin, to trace.Time // of a collective from 1 to 3 ms
	}{
		{"waits", "gloo:all_reduce", false, []CollectiveAnnotation{{Row: asks, Time: 900_000, Dur: 50_000}}, nil, nil, true, 1_000_000, 3_000_000},
		{"goes on", "gloo:all_reduce", false, []CollectiveAnnotation{{Row: asks, Time: 900_000, Dur: 50_000}}, []Launch{{Time: 1_500_000, Row: asks}}, nil, false, 1_000_000, 3_000_000},
		{"calls at the end", "gloo:barrier", false, []CollectiveAnnotation{{Row: asks, Time: 900_000, Dur: 50_000}}, []Launch{{Time: 3_000_000, Row: asks}}, nil, true, 1_000_000, 3_000_000},
		{"copies while it asks", "gloo:all_gather", false, []CollectiveAnnotation{{Row: asks, Time: 900_000, Dur: 150_000}}, []Launch{{Time: 1_040_000, Row: asks}}, nil, true, 1_000_000, 3_000_000},
		{"another thread calls", "gloo:all_reduce", false, []CollectiveAnnotation{{Row: asks, Time: 900_000, Dur: 50_000}}, []Launch{{Time: 1_500_000, Row: other}}, nil, true, 1_000_000, 3_000_000},
		{"nobody asked", "gloo:all_reduce", false, nil, nil, nil, false, 1_000_000, 3_000_000},
		{"a broadcast", "gloo:broadcast", false, []CollectiveAnnotation{{Row: asks, Time: 900_000, Dur: 50_000}}, nil, nil, false, 1_000_000, 3_000_000},
		{"asks for one of devices", "nccl:all_reduce", false, []CollectiveAnnotation{{Row: asks, Time: 900_000, Dur: 50_000}}, nil, []CollectiveAnnotation{sync(1_010_000, 500_000)}, false, 1_000_000, 3_000_000},
		{"a kernel", "gloo:all_reduce", true, []CollectiveAnnotation{{Row: asks, Time: 900_000, Dur: 50_000}}, nil, nil, false, 1_000_000, 3_000_000},
		{"waits for the device", "gloo:all_reduce", false, []CollectiveAnnotation{{Row: asks, Time: 900_000, Dur: 50_000}}, nil,
			[]CollectiveAnnotation{sync(1_550_000, 200_000), sync(1_010_000, 500_000), sync(2_900_000, 50_000)}, true, 1_750_000, 3_000_000},
		{"waits for the device at the end", "gloo:all_reduce", false, []CollectiveAnnotation{{Row: asks, Time: 900_000, Dur: 50_000}}, nil, []CollectiveAnnotation{sync(2_000_000, 500_000)}, true, 1_000_000, 3_000_000},
	} {
		name := syms.Intern(c.of)
		p := &Profile{Rows: []Row{{PID: 7, TID: 7}, {PID: 7, TID: 8}, {PID: 7, TID: 9}},
			Collectives: CollectivesOf(Collective{Event: NoEvent, Row: gloo, Time: 1_000_000, Dur: 2_000_000, Name: name, Op: name, OnGPU: c.onGPU, Seq: -1, GroupSize: -1})}
		p.SettleHosts(syms, c.calls, c.callers, c.syncs)
		got := p.Collectives.At(0)
		if got.Held != c.held || got.Time != c.begin || got.Time+trace.Time(got.Dur) != c.to {
			t.Errorf("%s: %+v", c.name, got)
		}
		waits := make([][]HostWait, 1)
		p.HostWaits(waits, func(string) (rank, pid int32) { return 0, 7 })
		if (len(waits[0]) == 1) != c.held || c.held && waits[0][0] != (HostWait{c.begin, c.to, 8, 7, true}) {
			t.Errorf("%s: waits %+v", c.name, waits)
		}
	}
}
