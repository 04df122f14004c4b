package chrometrace

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Arrows connect CANN calls to device tasks, even if only some categories are kept, and CANN
// threads belong to the Python process.
func TestCallsOfCANN(t *testing.T) {
	name := func(pid int, process string) string {
		return fmt.Sprintf(`{"ph":"M","name":"process_name","pid":%d,"tid":0,"args":{"name":%q}}`, pid, process)
	}
	slice := func(name string, pid, tid, ts, dur int, more string) string {
		return fmt.Sprintf(`{"ph":"X","name":%q,"pid":%d,"tid":%d,"ts":"1704161511%06d.25","dur":%d%s}`, name, pid, tid, ts, dur, more)
	}
	arrow := func(phase string, id, pid, tid, ts int) string {
		return fmt.Sprintf(`{"ph":%q,"name":"HostToDevice%d","cat":"HostToDevice","id":"%d","pid":%d,"tid":%d,"ts":"1704161511%06d.25"}`, phase, id, id, pid, tid, ts)
	}
	const python, cann, device, overlap = 437, 43702, 8, 43711
	file := "[" + strings.Join([]string{
		name(python, "Python"), name(cann, "CANN"), name(device, "Ascend Hardware"), name(overlap, "Overlap Analysis"), name(4, "other"),
		slice("aten::mm", python, 5, 0, 100, `,"cat":"cpu_op"`), slice("main", 4, 4, 0, 10, ""),
		slice("AscendCL@aclopCompileAndExecute", cann, 5, 10, 50, ""), slice("AscendCL@opCompile", cann, 5, 12, 20, ""),
		slice("AscendCL@aclnnAdd", cann, 6, 70, 10, ""), slice("AscendCL@aclrtSynchronizeStream", cann, 5, 90, 30, ""),
		slice("TransData", device, 3, 55, 5, ""), slice("MatMulV2", device, 3, 60, 20, ""), slice("Add", device, 3, 80, 9, ""), slice("Cast", device, 3, 95, 2, ""),
		slice("Computing", overlap, 0, 55, 30, ""),
		arrow("s", 1, cann, 5, 40), arrow("f", 1, device, 3, 55), arrow("f", 2, device, 3, 60), arrow("s", 2, cann, 5, 45),
		arrow("s", 3, cann, 6, 75), arrow("f", 3, device, 3, 80),
		arrow("s", 4, cann, 6, 85), arrow("f", 4, device, 3, 95), // no call encloses its start
		arrow("f", 5, device, 3, 97),
	}, ",\n") + "]"
	for _, cats := range [][]string{nil, {"kernel", "privateuse1_runtime", "cpu_op"}} {
		syms := trace.NewSymbols()
		p, err := Read("npu.json", strings.NewReader(file), Options{Syms: syms, Args: trace.NewArgs(), Diags: &trace.Diags{}, Filter: profile.Filter{Cats: cats}})
		if err != nil {
			t.Fatal(err)
		}
		call := map[int64]string{}
		for _, e := range p.Events {
			if e.Place.Kind() == profile.CallSlice && e.Correlation != 0 {
				call[e.Correlation] = syms.Name(e.Name)
			}
		}
		launched := map[string]string{"TransData": "AscendCL@aclopCompileAndExecute", "MatMulV2": "AscendCL@aclopCompileAndExecute", "Add": "AscendCL@aclnnAdd", "Cast": ""}
		calls := 0
		for _, e := range p.Events {
			row, name := p.Rows[e.Place.Row()], syms.Name(e.Name)
			if by, ok := launched[name]; ok {
				if e.Place.Kind() != profile.KernelSlice || (e.Correlation == 0) != (by == "") || call[e.Correlation] != by {
					t.Errorf("%s was launched by %q, want %q", name, call[e.Correlation], by)
				}
				delete(launched, name)
			}
			if strings.HasPrefix(name, "AscendCL@") {
				if calls++; e.Place.Kind() != profile.CallSlice || row.PID != python || row.Process != "Python" {
					t.Errorf("%s is a %v of %+v", name, e.Place.Kind(), row)
				}
			}
			if name == "Computing" && row.Kind != profile.RowOther {
				t.Errorf("what is told twice is on %+v", row)
			}
		}
		if len(launched) > 0 || calls != 4 {
			t.Errorf("%v: missing %v, and %d calls", cats, launched, calls)
		}
		if cats == nil && len(p.Arrows) != 3 {
			t.Errorf("%d arrows are left, want those that join nothing", len(p.Arrows))
		}
	}
}
