package nsysexport

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/nsysexport/internal/nsystest"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A stream has the contents of a source, in the terms of nsys stats, without processes that have no
// rank.
func TestStream(t *testing.T) {
	path := nsystest.Database(t, nsystest.Schema2024+fmt.Sprintf(`
		INSERT INTO StringIds VALUES (0, ''), (1, 'cudaLaunchKernel_v7000'), (2, 'gemm(int)'), (3, 'gemm'), (4, 'sem_wait');
		INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, correlationId, globalPid, demangledName, shortName,
			registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory, dynamicSharedMemory, localMemoryPerThread,
			localMemoryTotal, gridId)
		VALUES (10, 25, 3, 1, 7, 90, %[1]d, 2, 3, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0), (30, 31, 0, 1, 7, 90, %[2]d, 2, 3, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0);
		CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start, end, deviceId, contextId, streamId, correlationId, globalPid, graphId, graphExecId);
		INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (0, 0, 0, 1, 7, 5, %[1]d, 3, 4), (40, 60, 0, 1, 7, 6, %[1]d, 3, 4);
		CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, contextId, streamId, correlationId, globalPid, bytes, copyKind, srcKind, dstKind);
		INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1, 3, 0, 1, 7, 8, %[1]d, 64, 1, 0, 2), (3, 4, 0, 1, 7, 9, %[1]d, 32, 99, 7, 99);
		CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start, end, deviceId, contextId, streamId, correlationId, globalPid, bytes, value, memKind);
		INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (5, 6, 0, 1, 7, 10, %[1]d, 16, 0, 4);
		INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (start, end, eventClass, globalTid, correlationId, nameId, returnValue) VALUES (2, 9, 0, %[3]d, 90, 1, 0),
			(1, 10, 67, %[3]d, 90, 1, 0); -- the same call once more, for its stack
		CREATE TABLE OSRT_API (start, end, eventClass, globalTid, nameId, returnValue, nestingLevel);
		INSERT INTO OSRT_API (start, end, eventClass, globalTid, nameId, returnValue, nestingLevel) VALUES (11, 12, 27, %[3]d, 4, 0, 0), (11, 12, 27, %[2]d, 4, 0, 0);`, nsystest.TID(41, 0), nsystest.TID(42, 0), nsystest.TID(41, 43)))
	src, err := rows.Open(path, rows.Options{Syms: trace.NewSymbols(), Brief: true})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	st := NewStream(src, func(pid int32) int32 {
		if pid == 41 {
			return 6
		}
		return -1
	})
	var got []string
	event := func(e *profile.Event, more ...any) bool {
		got = append(got, fmt.Sprintf("%d %d %s %d %d %d %v", e.Start, e.Dur(), src.Options.Syms.Name(e.Name), e.Correlation-int64(e.PID)<<32, e.Rank, e.PID, more))
		return true
	}
	st.Kernels(func(k *profile.Kernel) bool { return event(&k.Event, k.Device, k.Stream, k.Graph) })
	st.Copies(func(c *profile.Copy) bool { return event(&c.Event, c.Device, c.Bytes, c.Kind) })
	st.Calls(func(c *profile.Call) bool { return event(&c.Event, c.TID) })
	st.Frames(func(f *profile.Frame) bool {
		got = append(got, fmt.Sprintf("%d %d %s %d %d %v", f.Start, f.Dur(), src.Options.Syms.Name(f.Name), f.Correlation, f.TID, f.Kind == profile.SystemFrame))
		return true
	})
	want := []string{
		"10 15 gemm(int) 90 6 41 [3 7 false]", "40 20 CUDA graph 3 6 6 41 [0 7 true]",
		"1 2 [CUDA memcpy Host-to-Device] 8 6 41 [0 64 Pageable -> Device]", "3 1 [CUDA memcpy Unknown] 9 6 41 [0 32 ]", "5 1 [CUDA memset] 10 6 41 [0 16 Managed]",
		"2 7 cudaLaunchKernel 90 6 41 [43]", "11 1 sem_wait 0 43 true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}

func TestStreamOfRanges(t *testing.T) {
	src, err := rows.Open(nsystest.NVTXDatabase(t), rows.Options{Syms: trace.NewSymbols(), Brief: true})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var want, got []string
	for r := range src.Within(0, 0).Ranges {
		if r.Kind != rows.MarkInstant {
			name := src.Options.Syms.Name(r.Text)
			if r.Domain != 0 {
				name = src.Options.Syms.Name(r.Domain) + ":" + name
			}
			want = append(want, fmt.Sprint(r.Start, r.End, name, r.TID, r.Open, r.Kind == rows.MarkStartEnd))
		}
	}
	NewStream(src, func(int32) int32 { return 0 }).Ranges(func(r *profile.Range) bool {
		got = append(got, fmt.Sprint(r.Start, r.End, src.Options.Syms.Name(r.Name), r.TID, r.Open, r.Style == profile.StartEnd))
		return true
	})
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}

// Processes are in order of their ids, so that all results are reproducible.
func TestOutlineIsInOrder(t *testing.T) {
	sql := nsystest.Schema2024 + "INSERT INTO StringIds VALUES (0, ''), (1, 'gemm');"
	var want []int64
	for pid := int64(10); pid < 30; pid++ {
		sql += fmt.Sprintf(`
			INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (start, end, eventClass, globalTid, correlationId, nameId, returnValue) VALUES (2, 9, 0, %d, 90, 1, 0);`, nsystest.TID(pid, 1))
		want = append(want, pid)
	}
	src, err := rows.Open(nsystest.Database(t, sql), rows.Options{Brief: true})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var got []int64
	for _, p := range Outline(src) {
		got = append(got, p.Meta.PID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("processes %v, want %v", got, want)
	}
}

// TestStreamWithin compares a stream limited to a window with the whole: it has the events that
// overlap the window, and the calls that launched them.
func TestStreamWithin(t *testing.T) {
	src, err := rows.Open(nsystest.Database(t, nsystest.EveryTable(3000)), rows.Options{Syms: trace.NewSymbols(), Brief: true})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	st := NewStream(src, func(int32) int32 { return 0 })
	first := trace.Time(math.MaxInt64)
	for k := range st.Kernels {
		first = min(first, k.Start)
	}
	for _, window := range [][2]trace.Time{{first + 1e6, first + 2e6}, {first + 12_345_678, 0}, {0, first + 9137}, {first + 5e6, first + 5e6}, {first - 9, first - 8}} {
		from, to := window[0], window[1]
		overlaps := func(e *profile.Event) bool { return (from == 0 || e.End >= from) && (to == 0 || e.Start <= to) }
		launched := map[int64]bool{}
		// list returns the events that matter, and the number of others.
		list := func(s profile.Stream) (all []string, others int) {
			event := func(kind string, e *profile.Event, more ...any) bool {
				if overlaps(e) || kind == "call" && launched[e.Correlation] {
					all = append(all, fmt.Sprint(kind, *e, more))
				} else {
					others++
				}
				return true
			}
			s.Kernels(func(k *profile.Kernel) bool {
				launched[k.Correlation] = launched[k.Correlation] || overlaps(&k.Event)
				return event("kernel", &k.Event, k.Device, k.Stream, k.Graph)
			})
			s.Copies(func(c *profile.Copy) bool {
				launched[c.Correlation] = launched[c.Correlation] || overlaps(&c.Event)
				return event("copy", &c.Event, c.Bytes)
			})
			s.Calls(func(c *profile.Call) bool { return event("call", &c.Event, c.TID) })
			s.Ranges(func(r *profile.Range) bool { return event("range", &r.Event, r.TID) })
			s.Frames(func(f *profile.Frame) bool { return event("frame", &f.Event, f.TID) })
			return all, others
		}
		want, all := list(st)
		for range 2 { // the second time, the relevant pages are known
			got, others := list(profile.Within(st, from, to))
			if !slices.Equal(got, want) || others > all/2 && from != 0 && to != 0 {
				t.Errorf("[%d, %d]: %d events and %d of %d others, want %d", from-first, to-first, len(got), others, all, len(want))
			}
		}
	}
}
