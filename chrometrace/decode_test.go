package chrometrace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// file is Chrome JSON decoded by encoding/json.
type file struct {
	DisplayTimeUnit     string
	BaseTimeNanoseconds int64
	Metadata            map[string]string
	TraceEvents         []*jsonEvent
}

type jsonEvent struct {
	Ph, Cat, Name, S, BP string
	PID, TID             int
	TS, Dur              json.Number
	ID                   any
	BindID               int  `json:"bind_id"`
	FlowOut              bool `json:"flow_out"`
	FlowIn               bool `json:"flow_in"`
	Args                 map[string]any
	start, dur           int64 // ns, from TS and Dur
}

func decode(t testing.TB, data []byte) *file {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	var f file
	if err := d.Decode(&f); err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	for _, e := range f.TraceEvents {
		if e.Ph != "M" {
			e.start = nanos(t, e.TS)
		}
		if e.Ph == "X" {
			e.dur = nanos(t, e.Dur)
		}
	}
	return &f
}

// nanos converts microseconds with three decimals to ns without using floats.
func nanos(t testing.TB, n json.Number) int64 {
	t.Helper()
	whole, rest, _ := strings.Cut(string(n), ".")
	if len(rest) != 3 {
		t.Fatalf("time %q has not three decimals", n)
	}
	ns, err := strconv.ParseInt(whole+rest, 10, 64)
	if err != nil || ns < 0 {
		t.Fatalf("time %q: %v", n, err)
	}
	return ns
}

// thread is the thread of an "X" or "i" event.
type thread struct{ pid, tid int }

// names returns the names of processes and threads.
func (f *file) names(t testing.TB) (processes map[int]string, threads map[thread]string) {
	t.Helper()
	processes, threads = map[int]string{}, map[thread]string{}
	for _, e := range f.TraceEvents {
		name, _ := e.Args["name"].(string)
		switch {
		case e.Ph != "M":
		case e.Name == "process_name":
			processes[e.PID] = name
		case e.Name == "thread_name":
			threads[thread{e.PID, e.TID}] = name
		case e.Name == "process_sort_index" && fmt.Sprint(e.Args["sort_index"]) == fmt.Sprint(e.PID):
		case e.Name == "thread_sort_index" && fmt.Sprint(e.Args["sort_index"]) == fmt.Sprint(e.TID):
		default:
			t.Fatalf("metadata event %+v", e)
		}
	}
	return processes, threads
}

// drawn is an arrow as Perfetto draws it.
type drawn struct {
	name     string
	from, to *jsonEvent
}

// arrows returns all arrows by the rules of trace_processor v58: events are ordered by time, slices
// first, longest first; an "s" or "f" event belongs to the top of its thread's stack, which
// finished slices leave only when the next slice or instant arrives; the slice that starts first is
// the source.
func (f *file) arrows(t testing.TB) []drawn {
	t.Helper()
	events := slices.Clone(f.TraceEvents)
	slices.SortStableFunc(events, func(a, b *jsonEvent) int {
		rank := func(e *jsonEvent) int64 {
			if e.Ph == "X" {
				return -1 - e.dur
			}
			return 0
		}
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(rank(a), rank(b)))
	})
	stacks := map[thread][]*jsonEvent{}
	sources := map[string]*jsonEvent{}
	var all []drawn
	start := func(key string, e *jsonEvent) {
		if sources[key] != nil {
			t.Fatalf("arrow %s starts twice", key)
		}
		sources[key] = e
	}
	end := func(key, name string, e *jsonEvent) {
		from := sources[key]
		switch {
		case from == nil:
			t.Fatalf("arrow %s ends before it starts", key)
		case e.start < from.start:
			from, e = e, from
		}
		all = append(all, drawn{name, from, e})
	}
	for _, e := range events {
		at := thread{e.PID, e.TID}
		stack := stacks[at]
		switch e.Ph {
		case "X", "i":
			for len(stack) > 0 {
				top := stack[len(stack)-1]
				over := top.start + top.dur
				if over > e.start || over == e.start && top.dur == 0 && e.dur == 0 {
					break
				}
				stack = stack[:len(stack)-1]
			}
			stacks[at] = append(stack, e)
			if key := fmt.Sprint("bind ", e.BindID); e.FlowOut {
				start(key, e)
			} else if e.FlowIn {
				end(key, "", e)
			}
		case "s", "f":
			if len(stack) == 0 || e.BP != "e" {
				t.Fatalf("event %q belongs to nothing", e.Ph)
			}
			key := fmt.Sprint(e.ID, e.Cat, e.Name)
			if e.Ph == "s" {
				start(key, stack[len(stack)-1])
			} else {
				end(key, e.Name, stack[len(stack)-1])
			}
		}
	}
	return all
}
