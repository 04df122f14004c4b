package rows

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/nsysexport/internal/nsystest"
	"github.com/sgtrace/sgtrace/trace"
)

func TestRanges(t *testing.T) {
	e, names, diags := read(t, nsystest.NVTXDatabase(t))
	got := map[string]Range{}
	for _, r := range e.Ranges {
		got[names.Name(r.Text)] = r
	}
	if len(got) != 11 {
		t.Fatalf("%d ranges", len(got))
	}
	if r := got["push"]; r.Start != nsystest.NVTXStart+1000 || r.End != r.Start+100 || r.PID != 5 || r.TID != 6 ||
		names.Name(r.Domain) != "NCCL" || names.Name(r.Category) != "category" ||
		r.Kind != MarkPushPop || r.Open {
		t.Errorf("push: %+v", r)
	}
	if r := got["registered"]; names.Name(r.Domain) != "other" || r.Category != 0 {
		t.Errorf("registered: %+v", r)
	}
	for _, name := range []string{"never popped", "never ended"} {
		if r := got[name]; !r.Open || r.End != nsystest.NVTXStart+5000 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := got["crosses"]; r.Kind != MarkStartEnd || r.Domain != 0 {
		t.Errorf("crosses: %+v %s", r, names.Name(r.Domain))
	}
	if r := got[""]; r.Kind != MarkInstant || r.End != r.Start || r.Domain != 0 || r.Open {
		t.Errorf("mark: %+v", r)
	}
	codes := ""
	for _, d := range diags {
		codes += d.Code + " "
	}
	if codes != "nsys-nvtx-kind nsys-payload " {
		t.Errorf("diagnostics %v", diags)
	}
}

func TestPayloads(t *testing.T) {
	e, names, _ := read(t, nsystest.NVTXDatabase(t))
	if want := []Comm{{0, 5, 2, -1, -1}, {math.MaxUint64, 5, 3, -1, -1}}; !slices.Equal(e.Comms, want) {
		t.Errorf("communicators %+v, want %+v", e.Comms, want)
	}
	for _, r := range e.Ranges {
		text := ""
		for a := range names.args.All(r.Args) {
			text += names.Name(a.Key) + "="
			switch a.Kind {
			case trace.ArgInt:
				text += fmt.Sprint(a.Int())
			case trace.ArgUint:
				text += fmt.Sprint(a.Uint())
			case trace.ArgFloat:
				text += fmt.Sprint(a.Float())
			case trace.ArgBool:
				text += fmt.Sprint(a.Bool())
			default:
				text += string(a.Bytes())
			}
			text += ";"
		}
		want := map[string]string{
			"json":       "NCCL communicator ID=18446744073709551615;Rank=3;x=[1];s=t;f=1.5;b=true;",
			"json by id": "Rank=2;",
			"binary":     "NCCL communicator ID=18446744073709551615;Rank=-2;",
			"hex":        "NCCL communicator ID=18446744073709551615;Rank=-2;",
		}[names.Name(r.Text)]
		if text != want {
			t.Errorf("%s: %s, want %s", names.Name(r.Text), text, want)
		}
	}
}

// Threads that named themselves have that name.
func TestNamedThreads(t *testing.T) {
	s, err := Open(nsystest.NVTXDatabase(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.NamedThreads(); len(got) != 1 || got[0] != (Thread{5, 6, "by id"}) {
		t.Errorf("%v", got)
	}
}
