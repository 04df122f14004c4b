package nsysexport

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/sgtrace/sgtrace/nsysexport/internal/nsystest"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// written formats a stack as collapsed stacks do, outermost function first.
func written(syms *trace.Symbols, s *profile.Sample) string {
	var names []string
	for f := range s.Stacks.From(s.Stack) {
		names = append(names, syms.Name(f.Function))
	}
	slices.Reverse(names)
	return strings.Join(names, ";")
}

// openStream opens an export as one rank with all processes, except those in without.
func openStream(t *testing.T, path string, without ...int32) (*rows.Source, profile.Stream) {
	t.Helper()
	src, err := rows.Open(path, rows.Options{Brief: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src, NewStream(src, func(pid int32) int32 {
		if slices.Contains(without, pid) {
			return -1
		}
		return 0
	})
}

// Stacks are complete and in the right order: of samples, of calls, with unnamed functions, and in
// any order of frames in the file.
func TestStacks(t *testing.T) {
	path := nsystest.Database(t, nsystest.Tables()+fmt.Sprintf(`
		INSERT INTO StringIds VALUES (0, ''), (1, 'main'), (2, 'run'), (3, 'poll'), (4, '/opt/server'), (5, '/usr/lib/libc.so.6'), (6, '0x7f12'), (7, '0x7f13'),
			(8, '[Broken backtraces]'), (9, 'cudaStreamSynchronize_v3020');
		INSERT INTO COMPOSITE_EVENTS VALUES (1, 10, 3, 1, %[1]d, 1), (2, 20, NULL, 1, %[1]d, 1), (3, 30, 3, 1, %[1]d, 0), (4, 40, 3, 1, %[2]d, 1), (5, 50, 3, 1, %[1]d, 1),
			(900719925474099, 60, 3, 1, %[1]d, 1);
		INSERT INTO SAMPLING_CALLCHAINS (id, symbol, module, unresolved, stackDepth) VALUES (1, 2, 4, 0, 0), (1, 1, 4, 0, 1), (1, 8, 8, 0, 2), (2, 1, 4, NULL, 2), (2, 6, 5, 1, 0), (2, 7, 5, 1, 1),
			(3, 1, 4, 0, 0), (4, 1, 4, 0, 0), (900719925474099, 2, 4, 0, 0);
		INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (start, end, eventClass, globalTid, correlationId, nameId, returnValue, callchainId) VALUES (5, 9, 0, %[1]d, 1, 9, 0, 1), (15, 19, 0, %[1]d, 1, 9, 0, NULL);
		INSERT INTO CUDA_CALLCHAINS (id, symbol, module, stackDepth) VALUES (1, 2, 4, 0);
		INSERT INTO OSRT_API (start, end, eventClass, globalTid, nameId, returnValue, callchainId) VALUES (11, 12, 27, %[1]d, 3, 0, 0), (13, 14, 27, %[1]d, 3, 0, 1), (13, 14, 27, %[1]d, 3, 0, 77);
		INSERT INTO OSRT_CALLCHAINS (id, symbol, module, stackDepth) VALUES (1, 3, 5, 0), (1, 1, 4, 1);
		INSERT INTO ANALYSIS_DETAILS VALUES (0, 100, 0, 100);
		INSERT INTO SCHED_EVENTS VALUES (10, 3, 0, %[1]d), (20, 4, 1, %[1]d), (25, 4, 0, %[1]d), (30, 1, 1, %[1]d), (30, 1, 1, %[2]d)`,
		nsystest.TID(41, 43), nsystest.TID(42, 42)))
	src, st := openStream(t, path, 42)
	var got []string
	pass := func(s *profile.Sample) bool {
		got = append(got, fmt.Sprintf("%d %d %s %d %d %d %d %s", s.Start, s.End, src.Options.Syms.Name(s.Name), s.Rank, s.PID, s.TID, s.CPU, written(src.Options.Syms, s)))
		return true
	}
	st.Samples(pass)
	st.Backtraces(nil)(pass)
	st.Runs(func(r *profile.Run) bool {
		got = append(got, fmt.Sprintf("%d %d %d %d %d", r.Start, r.End, r.PID, r.TID, r.CPU))
		return true
	})
	want := []string{
		"10 10 run 0 41 43 3 [Broken backtraces];main;run", "20 20 [libc.so.6] 0 41 43 -1 main;[libc.so.6];[libc.so.6]", "60 60 run 0 41 43 3 run",
		"5 9 cudaStreamSynchronize 0 41 43 -1 run", "13 14 poll 0 41 43 -1 main;poll",
		"0 10 41 43 3", "20 25 41 43 4", "30 100 41 43 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	n := 0
	st.Samples(func(*profile.Sample) bool { n++; return false })
	st.Backtraces(nil)(func(*profile.Sample) bool { n++; return false })
	if n != 2 {
		t.Errorf("walks that were ended passed %d rows", n)
	}
}

// sampled are totals over stacks: how many stacks each function is on, and the numbers of rows and frames.
type sampled struct {
	rows, frames int
	functions    map[string]int
}

// exports returns paths of synthetic exports, and of those in the shared data.
func exports(t *testing.T) []string {
	t.Helper()
	paths := []string{nsystest.Database(t, nsystest.EveryTable(300))}
	t.Run("shared", func(t *testing.T) {
		real, err := filepath.Glob(testinput.Shared(t, "data", "nsys", "real", "*.sqlite"))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, real...)
	})
	return paths
}

// The number of stacks each function is on equals that of an SQL join over the tables, in any form
// of export.
func TestStacksAddUp(t *testing.T) {
	all := 0
	for i, path := range exports(t) {
		conn := nsystest.Connect(t, path)
		samples := joined(t, conn, "SAMPLING_CALLCHAINS", "COMPOSITE_EVENTS e ON e.id", "cpuCycles <> 0")
		calls := joined(t, conn, "CUDA_CALLCHAINS", "CUPTI_ACTIVITY_KIND_RUNTIME e ON e.callchainId", "1").
			plus(joined(t, conn, "OSRT_CALLCHAINS", "OSRT_API e ON e.callchainId", "e.callchainId <> 0"))
		forms := []string{path}
		if i == 0 {
			forms = append(forms, nsystest.Folder(t, path, 50))
		}
		for _, form := range forms {
			src, st := openStream(t, form)
			samples.equal(t, form, counted(src, st.Samples))
			calls.equal(t, form, counted(src, st.Backtraces(nil)))
		}
		all += samples.rows + calls.rows
	}
	if all < 100 {
		t.Errorf("%d stacks are too few", all)
	}
}

// Selected call stacks are the same as among all stacks, and share one set of stacks.
func TestWantedBacktraces(t *testing.T) {
	all, paths := 0, exports(t)
	for _, path := range paths {
		src, st := openStream(t, path)
		for _, part := range []trace.Time{1, 2, 7} {
			wanted := func(s *profile.Sample) bool { return (s.Start+s.End)%part == 0 }
			var want []string
			for s := range st.Backtraces(nil) {
				if wanted(s) {
					want = append(want, fmt.Sprint(s.Event, s.TID, s.CPU, written(src.Options.Syms, s)))
				}
			}
			var got []string
			var stacks *profile.Stacks
			for s := range st.Backtraces(wanted) {
				if stacks != nil && s.Stacks != stacks {
					t.Fatalf("%s: stacks of several sets", path)
				}
				stacks = s.Stacks
				got = append(got, fmt.Sprint(s.Event, s.TID, s.CPU, written(src.Options.Syms, s)))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: of every %d. call %d stacks, want %d, or others", path, part, len(got), len(want))
			}
			all += len(got)
		}
	}
	if shared := len(paths) > 1; shared && all < 100 { // the synthetic tables only have stacks of samples
		t.Errorf("%d stacks are too few", all)
	}
}

// Stack numbers may be anything: few or many, far apart, or negative. Frames of one stack may be
// scattered, and then the last ones count.
func TestChainNumbers(t *testing.T) {
	path := nsystest.Database(t, nsystest.Tables()+fmt.Sprintf(`
		INSERT INTO StringIds VALUES (0, ''), (1, 'main'), (2, 'run'), (3, 'poll'), (4, '/opt/server');
		INSERT INTO OSRT_API (start, end, eventClass, globalTid, nameId, returnValue, callchainId) VALUES (1, 9, 27, %[1]d, 3, 0, -5),
			(2, 9, 27, %[1]d, 3, 0, 900719925474099), (3, 9, 27, %[1]d, 3, 0, 33), (4, 9, 27, %[1]d, 3, 0, 34), (5, 9, 27, %[1]d, 3, 0, 64);
		INSERT INTO OSRT_CALLCHAINS (id, symbol, module, stackDepth) VALUES (33, 1, 4, 0), (64, 3, 4, 0), (-5, 2, 4, 0), (-5, 1, 4, 1), (900719925474099, 3, 4, 0),
			(33, 2, 4, 1), (7, 1, 4, 0)`, nsystest.TID(41, 43)))
	src, st := openStream(t, path)
	var got []string
	for s := range st.Backtraces(func(s *profile.Sample) bool { return s.Start != 5 }) {
		got = append(got, fmt.Sprint(int64(s.Start), " ", written(src.Options.Syms, s)))
	}
	if want := []string{"1 main;run", "2 poll", "3 run"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// counted counts what a walk visits.
func counted(src *rows.Source, walk func(func(*profile.Sample) bool)) *sampled {
	c := &sampled{functions: map[string]int{}}
	walk(func(s *profile.Sample) bool {
		c.rows++
		for f := range s.Stacks.From(s.Stack) {
			c.frames++
			if name := src.Options.Syms.Name(f.Function); !strings.HasPrefix(name, "[") {
				c.functions[name]++
			}
		}
		return true
	})
	return c
}

// equal checks that a walk visited the same.
func (c *sampled) equal(t *testing.T, path string, got *sampled) {
	t.Helper()
	if got.rows != c.rows || got.frames != c.frames || !maps.Equal(got.functions, c.functions) {
		t.Errorf("%s: %d stacks with %d frames, want %d with %d, or other functions", filepath.Base(path), got.rows, got.frames, c.rows, c.frames)
	}
}

// joined counts with SQL. Missing tables count as empty.
func joined(t *testing.T, conn *sqlite.Conn, chains, events, where string) *sampled {
	t.Helper()
	c := &sampled{functions: map[string]int{}}
	from := fmt.Sprintf(" FROM %s c JOIN %s = c.id LEFT JOIN StringIds s ON s.id = c.symbol WHERE %s", chains, events, where)
	ask(t, conn, "SELECT count(*), count(DISTINCT e.rowid)"+from, func(s *sqlite.Stmt) { c.frames, c.rows = s.ColumnInt(0), s.ColumnInt(1) })
	ask(t, conn, "SELECT s.value, count(*)"+from+" AND NOT ifnull(c.unresolved, 0) AND s.value NOT LIKE '[%' GROUP BY 1", func(s *sqlite.Stmt) {
		c.functions[s.ColumnText(0)] = s.ColumnInt(1)
	})
	return c
}

// ask calls each for the rows of a query. A missing table has none.
func ask(t *testing.T, conn *sqlite.Conn, sql string, each func(*sqlite.Stmt)) {
	t.Helper()
	err := sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error { each(s); return nil }})
	if err != nil && !strings.Contains(err.Error(), "no such table") {
		t.Fatal(err)
	}
}

// plus adds the totals of other stacks.
func (c *sampled) plus(o *sampled) *sampled {
	c.rows, c.frames = c.rows+o.rows, c.frames+o.frames
	for name, n := range o.functions {
		c.functions[name] += n
	}
	return c
}

// Scheduled times of threads have the durations that a naive reader finds from pairs of events.
func TestRunsAddUp(t *testing.T) {
	all := 0
	for _, path := range exports(t) {
		_, st := openStream(t, path)
		got := map[int64]int64{}
		st.Runs(func(r *profile.Run) bool {
			got[r.TID] += r.Dur()
			all++
			return true
		})
		if want := naiveRuns(t, path); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", filepath.Base(path), got, want)
		}
	}
	if all == 0 {
		t.Error("nothing ran")
	}
}

// naiveRuns sums the time on cores by thread, one thread at a time.
func naiveRuns(t *testing.T, path string) map[int64]int64 {
	t.Helper()
	conn := nsystest.Connect(t, path)
	type change struct {
		at int64
		in bool
	}
	threads, last := map[int64][]change{}, int64(0)
	ask(t, conn, "SELECT globalTid, start, isSchedIn FROM SCHED_EVENTS ORDER BY rowid", func(s *sqlite.Stmt) {
		threads[s.ColumnInt64(0)] = append(threads[s.ColumnInt64(0)], change{s.ColumnInt64(1), s.ColumnInt(2) != 0})
		last = max(last, s.ColumnInt64(1))
	})
	ask(t, conn, "SELECT max(duration) FROM ANALYSIS_DETAILS", func(s *sqlite.Stmt) { last = max(last, s.ColumnInt64(0)) })
	sums := map[int64]int64{}
	for id, changes := range threads {
		if !changes[0].in {
			changes = append([]change{{min(0, changes[0].at), true}}, changes...)
		}
		on := int64(-1 << 62)
		sum := int64(0)
		for _, c := range append(changes, change{last, false}) {
			if c.in && on < 0 {
				on = c.at
			} else if !c.in && on >= 0 {
				sum += max(0, c.at-on)
				on = -1 << 62
			}
		}
		sums[id&0xffffff] += sum
	}
	return sums
}

// Samples are instants with stacks on a row of their thread, unless their category is filtered out.
func TestSamplesAreDrawn(t *testing.T) {
	path := nsystest.Database(t, nsystest.Tables()+fmt.Sprintf(`
		INSERT INTO StringIds VALUES (0, ''), (1, 'main'), (2, 'void srv::run<int>(int)'), (3, '/opt/server'), (4, '[Broken backtraces]');
		INSERT INTO COMPOSITE_EVENTS VALUES (1, 10, 3, 1, %[1]d, 1), (2, 20, 3, 1, %[1]d, 1), (3, 30, 3, 1, %[1]d, 1);
		INSERT INTO SAMPLING_CALLCHAINS (id, symbol, module, stackDepth) VALUES (1, 2, 3, 0), (1, 1, 3, 1), (1, 4, 4, 2), (3, 1, 3, 0)`, nsystest.TID(41, 43)))
	for cats, want := range map[string][]string{
		"sample,sched": {"10 void srv::run<int>(int) [Broken backtraces];main;run", "30 main main"},
		"sched":        nil,
	} {
		syms, args := trace.NewSymbols(), trace.NewArgs()
		profiles, err := readProfiles(path, rows.Options{Syms: syms, Args: args}, &profile.Filter{Cats: strings.Split(cats, ",")})
		if err != nil {
			t.Fatal(err)
		}
		stack, _ := syms.Lookup("stack")
		var got []string
		for _, p := range profiles {
			for _, x := range p.Instants {
				a, _ := args.Find(x.Args, stack)
				got = append(got, fmt.Sprintf("%d %s %s", x.Time, syms.Name(x.Name), a.Bytes()))
				if row := p.Rows[x.Row]; row.Name != "CPU samples" || row.TID != 43 {
					t.Errorf("row %+v", row)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", cats, got, want)
		}
	}
}

// Of very many samples, an even selection is drawn, and a message says how many.
func TestManySamples(t *testing.T) {
	const n = maxSamples + maxSamples/2
	path := nsystest.Database(t, nsystest.Tables("StringIds", "COMPOSITE_EVENTS", "SAMPLING_CALLCHAINS", "ThreadNames")+fmt.Sprintf(`
		INSERT INTO StringIds VALUES (0, ''), (1, 'main');
		WITH RECURSIVE i(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM i WHERE x<%[2]d) INSERT INTO COMPOSITE_EVENTS SELECT x, x, 3, 1, %[1]d, 1 FROM i;
		INSERT INTO SAMPLING_CALLCHAINS (id, symbol, module, stackDepth) SELECT id, 1, 0, 0 FROM COMPOSITE_EVENTS`, nsystest.TID(41, 43), n))
	diags := &trace.Diags{}
	profiles, err := readProfiles(path, rows.Options{Args: trace.NewArgs(), Diags: diags}, &profile.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if drawn := len(profiles[0].Instants); drawn != n/2 {
		t.Errorf("%d samples of %d are drawn", drawn, n)
	}
	if list := fmt.Sprint(diags.All()); !strings.Contains(list, fmt.Sprintf("%d of %d samples", n/2, n)) {
		t.Errorf("messages %s", list)
	}
}
