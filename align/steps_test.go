package align

import "testing"

// Clock 0 exchanges messages with clocks 1 and 2, and clock 1 is set back. Clock 2 refutes the
// alternative that clock 0 was set forward.
func TestRefuting(t *testing.T) {
	const ms, set, by = 1_000_000, 10_000_000_000, 200_000_000
	var bounds []Bound
	for i := range int64(200) {
		at, server := i*100*ms, int(1+i%2)
		off := int64(server) * 3 * ms
		if server == 1 && at >= set {
			off -= by
		}
		began, ended := at+ms+off, at+50*ms+off // by the server's clock
		bounds = append(bounds, Bound{A: 0, B: server, At: began, Lo: NoLo, Hi: began - at},
			Bound{A: server, B: 0, At: at + 52*ms, Lo: NoLo, Hi: at + 52*ms - ended})
	}
	jumps := Jumps(bounds)
	if len(jumps) != 1 || jumps[0].A != 0 || jumps[0].B != 1 || max(jumps[0].By+by, -jumps[0].By-by) > 2*ms {
		t.Fatalf("%+v, want clock 1 to be set back by 200 ms", jumps)
	}
	j := &jumps[0]
	if n := Refuting(bounds, 0, j.BeforeA, j.AfterA, -j.By); n != 1 {
		t.Errorf("%d clocks contradict that clock 0 was set forward, want clock 2", n)
	}
	if n := Refuting(bounds, 1, j.BeforeB, j.AfterB, j.By); n != 0 {
		t.Errorf("%d clocks contradict that clock 1 was set back, want none", n)
	}
	if n := Refuting(bounds, 2, set, set, by); n != 1 {
		t.Errorf("%d clocks contradict that clock 2 was set, want clock 0", n)
	}
	if n := Refuting(bounds[:6], 0, 0, 0, by); n != 0 {
		t.Errorf("%d clocks contradict it by a few bounds, want none", n)
	}
}
