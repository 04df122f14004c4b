package rocm_test

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/rocm"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testexport"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// index reads a file.
func index(t *testing.T, f *format.Format, path string, filter profile.Filter) (*format.Source, *format.Options, error) {
	t.Helper()
	opt := &format.Options{Syms: trace.NewSymbols(), Args: trace.NewArgs(), Diags: &trace.Diags{}, Filter: filter}
	in := &format.Input{Name: filepath.Base(path), Path: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }}
	src, err := f.Index(in, opt)
	return src, opt, err
}

// lines lists the activity of a process, one line per item, sorted.
func lines(src *format.Source, opt *format.Options, pid int64) (out []string) {
	for _, p := range src.Profiles {
		if p.Meta.PID != pid {
			continue
		}
		of := func(string) (rank, pid int32) { return 0, int32(p.Meta.PID) }
		st := p.Stream(opt.Syms, opt.Args, of)
		calls := map[int64]profile.Event{}
		st.Calls(func(c *profile.Call) bool {
			calls[c.Correlation] = c.Event
			out = append(out, fmt.Sprint("call ", opt.Syms.Name(c.Name), c.Start, c.End))
			return true
		})
		st.Kernels(func(k *profile.Kernel) bool {
			call := calls[k.Correlation]
			out = append(out, fmt.Sprint("kernel ", opt.Syms.Name(k.Name), k.Start, k.End, k.Device, k.Stream, k.Grid.OneBlock(), " of ", opt.Syms.Name(call.Name), call.Start))
			return true
		})
		st.Copies(func(c *profile.Copy) bool {
			out = append(out, fmt.Sprint("copy ", opt.Syms.Name(c.Name), c.Start, c.End, c.Bytes, c.Stream, " at ", calls[c.Correlation].Start))
			return true
		})
		st.Ranges(func(r *profile.Range) bool {
			out = append(out, fmt.Sprint("range ", opt.Syms.Name(r.Name), r.Start, r.End))
			return true
		})
		st.CounterValues(func(c *profile.CounterValue) bool {
			out = append(out, fmt.Sprint("counter ", opt.Syms.Name(c.Name), opt.Syms.Name(c.Source), c.Time, c.Value))
			return true
		})
	}
	slices.Sort(out)
	return out
}

// truth returns the expected lines for a rank. In RPD, graph kernels have no grid, ranges are
// instants, and there are no counters.
func truth(p *testexport.Rank, ofRPD bool) (out []string) {
	for _, c := range p.Calls {
		out = append(out, fmt.Sprint("call ", c.Name, trace.Time(c.Start), trace.Time(c.End)))
	}
	for _, k := range p.Kernels {
		one := 0
		if k.Blocks == 1 && !(ofRPD && p.Calls[k.Call].Name == "hipGraphLaunch") {
			one = 256
		}
		out = append(out, fmt.Sprint("kernel ", k.Name, trace.Time(k.Start), trace.Time(k.End), p.Number, k.Stream, one, " of ", p.Calls[k.Call].Name, trace.Time(p.Calls[k.Call].Start)))
		if !ofRPD {
			out = append(out, fmt.Sprint("counter ", "SQ_WAVES", fmt.Sprint("GPU ", p.Number), trace.Time(k.End), k.Waves))
		}
	}
	for _, c := range p.Copies {
		name := "[CUDA memcpy Host-to-Device]"
		if c.Back {
			name = "[CUDA memcpy Device-to-Host]"
		}
		out = append(out, fmt.Sprint("copy ", name, trace.Time(c.Start), trace.Time(c.End), c.Bytes, c.Stream, " at ", trace.Time(p.Calls[c.Call].Start)))
	}
	if !ofRPD {
		for _, r := range p.Ranges {
			out = append(out, fmt.Sprint("range ", r.Text, trace.Time(r.Start), trace.Time(r.End)))
		}
	}
	slices.Sort(out)
	return out
}

// later returns a rank with by added to all times, as in its Perfetto trace.
func later(p *testexport.Rank, by int64) *testexport.Rank {
	q := &testexport.Rank{Number: p.Number, PID: p.PID, Kernels: slices.Clone(p.Kernels), Copies: slices.Clone(p.Copies), Calls: slices.Clone(p.Calls), Ranges: slices.Clone(p.Ranges)}
	for i := range q.Kernels {
		q.Kernels[i].Start, q.Kernels[i].End = q.Kernels[i].Start+by, q.Kernels[i].End+by
	}
	for i := range q.Copies {
		q.Copies[i].Start, q.Copies[i].End = q.Copies[i].Start+by, q.Copies[i].End+by
	}
	for i := range q.Calls {
		q.Calls[i].Start, q.Calls[i].End = q.Calls[i].Start+by, q.Calls[i].End+by
	}
	for i := range q.Ranges {
		q.Ranges[i].Start, q.Ranges[i].End = q.Ranges[i].Start+by, q.Ranges[i].End+by
	}
	return q
}

// unsized returns a rank without copy sizes, which tables lack.
func unsized(p *testexport.Rank) *testexport.Rank {
	q := later(p, 0)
	for i := range q.Copies {
		q.Copies[i].Bytes = -1
	}
	return q
}

// A form is a way to write a run.
type form struct {
	name   string
	format *format.Format
	ranks  []int
	write  func(r *testexport.ROCm, path string) error
}

// in returns the path to write it to.
func (f *form) in(dir string) string {
	if f.format == rocm.RocprofCSV {
		return filepath.Join(dir, "out_kernel_trace.csv")
	}
	return filepath.Join(dir, "results.db")
}

var forms = []form{
	{"rocpd", rocm.Rocpd, []int{1}, func(r *testexport.ROCm, path string) error { return r.WriteRocpd(path, true, 1) }},
	{"plain rocpd", rocm.Rocpd, []int{0}, func(r *testexport.ROCm, path string) error { return r.WriteRocpd(path, false, 0) }},
	{"merged rocpd", rocm.Rocpd, []int{0, 1}, func(r *testexport.ROCm, path string) error { return r.WriteRocpd(path, true, 0, 1) }},
	{"RPD", rocm.RPD, []int{0, 1}, func(r *testexport.ROCm, path string) error { return r.WriteRPD(path) }},
	{"JSON", rocm.Rocprof, []int{1}, func(r *testexport.ROCm, path string) error { return r.WriteJSON(path, 1) }},
	{"Perfetto", rocm.RocprofPerfetto, []int{1}, func(r *testexport.ROCm, path string) error { return r.WritePerfetto(path, 1) }},
	{"CSV", rocm.RocprofCSV, []int{1}, func(r *testexport.ROCm, path string) error { return r.WriteCSV(path, 1) }},
}

// All forms of a run give the same activity, exact to the nanosecond, with the call that launched each kernel.
func TestEveryRow(t *testing.T) {
	r := testexport.NewROCm(3, 2, 12)
	for _, f := range forms {
		path := f.in(t.TempDir())
		if err := f.write(r, path); err != nil {
			t.Fatal(err)
		}
		head, _ := os.ReadFile(path)
		for _, other := range []*format.Format{rocm.RPD, rocm.Rocpd, rocm.Rocprof, rocm.RocprofPerfetto, rocm.RocprofCSV} {
			if is := other.Sniff(head[:min(len(head), 64<<10)]); is && other != f.format {
				t.Errorf("%s is taken for a %s", f.name, other.Name)
			} else if !is && other == f.format {
				t.Errorf("%s is not recognized", f.name)
			}
		}
		src, opt, err := index(t, f.format, path, profile.Filter{})
		if err != nil {
			t.Fatal(f.name, err)
		}
		for _, n := range f.ranks {
			p := r.Ranks[n]
			switch f.format {
			case rocm.RocprofPerfetto:
				p = later(p, r.Booted)
			case rocm.RocprofCSV:
				p = unsized(p)
			}
			got, want := lines(src, opt, int64(p.PID)), truth(p, f.format == rocm.RPD)
			if f.format == rocm.RPD {
				got = slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "counter sclk") })
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, rank %d: %d rows, want %d; the first that differs is %s", f.name, n, len(got), len(want), firstOther(got, want))
			}
		}
		for i, p := range src.Profiles {
			if f.format == rocm.Rocpd && !slices.Equal(p.Meta.Hints, []naming.Hint{{From: "environment", Rank: int32(f.ranks[i]), Size: 2}}) {
				t.Errorf("%s: hints %v", f.name, p.Meta.Hints)
			}
			if f.format != rocm.RPD && (len(p.Steps) != len(r.Ranks[0].Ranges) || p.Steps[0].Kind != profile.StepDecode) {
				t.Errorf("%s: %d steps, want %d", f.name, len(p.Steps), len(r.Ranks[0].Ranges))
			}
		}
		for _, d := range opt.Diags.All() {
			if d.Severity > trace.Info {
				t.Errorf("%s: %s", f.name, d)
			}
		}
	}
}

func firstOther(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return got[i] + ", want " + want[i]
		}
	}
	return "behind the last"
}

// A window or a kind keeps exactly the matching part of everything.
func TestFilter(t *testing.T) {
	r := testexport.NewROCm(5, 2, 10)
	from, to := trace.Time(r.Ranks[1].Kernels[10].Start), trace.Time(r.Ranks[1].Kernels[30].End)
	for _, f := range forms {
		path := f.in(t.TempDir())
		if err := f.write(r, path); err != nil {
			t.Fatal(err)
		}
		src, opt, err := index(t, f.format, path, profile.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		part := *opt
		from, to := from, to
		if f.format == rocm.RocprofPerfetto {
			from, to = from+trace.Time(r.Booted), to+trace.Time(r.Booted)
		}
		part.Filter = profile.Filter{From: from, To: to, Cats: []string{"Kernel"}, MinDur: 10_000}
		some, err := src.Stream(&part)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range src.Profiles {
			if !p.Meta.OnGPU {
				continue
			}
			want := slices.DeleteFunc(slices.Clone(p.Events), func(s profile.Slice) bool {
				return opt.Syms.Name(s.Cat) != "kernel" || s.Dur < 10_000 || s.End() < from || s.Time > to
			})
			if got := some[i].Events; len(got) != len(want) || len(want) == 0 || some[i].Collectives.Len() != p.Collectives.Len() {
				t.Errorf("%s: %d events in the window, want %d; %d collectives of %d", f.name, len(got), len(want), some[i].Collectives.Len(), p.Collectives.Len())
			}
		}
	}
}

// No secret is kept in any name or argument.
func TestSecrets(t *testing.T) {
	r := testexport.NewROCm(7, 2, 4)
	for _, f := range forms {
		path := f.in(t.TempDir())
		if err := f.write(r, path); err != nil {
			t.Fatal(err)
		}
		if file, _ := os.ReadFile(path); !strings.Contains(string(file), r.Canary) && f.format != rocm.RocprofCSV { // tables have no environment
			t.Fatalf("%s has no canary", f.name)
		}
		src, opt, err := index(t, f.format, path, profile.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range src.Profiles {
			text := fmt.Sprintf("%+v", p.Meta)
			for _, row := range p.Rows {
				text += row.Name + row.Process
			}
			for _, s := range p.Events {
				text += opt.Syms.Name(s.Name)
				text += string(opt.Args.Raw(s.Args))
			}
			// RPD has one table for names and argument texts: all are interned, but arguments are never shown.
			if strings.Contains(text, r.Canary) {
				t.Errorf("%s: a secret is held", f.name)
			}
		}
	}
}

// A table row with an invalid time is dropped and reported with its position; the others stay.
func TestRowWithoutTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "7_kernel_trace.csv")
	row := `"KERNEL_DISPATCH","Agent 1",1,%d,"k",%d,%s,%d` + "\n"
	text := `"Kind","Agent_Id","Queue_Id","Dispatch_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp"` + "\n"
	for i, start := range []string{"1000", "3x00", "5000"} {
		text += fmt.Sprintf(row, i+1, i+1, start, 2000*(i+1))
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	src, opt, err := index(t, rocm.RocprofCSV, path, profile.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	var starts []trace.Time
	for _, e := range src.Profiles[0].Events {
		starts = append(starts, e.Time)
	}
	at := slices.IndexFunc(opt.Diags.All(), func(d trace.Diag) bool { return d.Message == trace.RocmTime })
	if !slices.Equal(starts, []trace.Time{1000, 5000}) || at < 0 || opt.Diags.All()[at].Pos.Offset != int64(strings.Index(text, `"KERNEL_DISPATCH","Agent 1",1,2`)) {
		t.Errorf("kernels begin at %d; %v", starts, opt.Diags.All())
	}
}

// mutants returns the number of mutants of each form.
func mutants() int {
	if n, err := strconv.Atoi(os.Getenv("SGTRACE_MUTANTS")); err == nil {
		return n
	}
	return 28 // each kind of damage twice
}

// Damaged files are read up to the damage, without other effects.
func TestMutants(t *testing.T) {
	r := testexport.NewROCm(11, 2, 6)
	for _, f := range forms {
		path := f.in(t.TempDir())
		if err := f.write(r, path); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s := &testinput.Subject{Data: data, Cuts: testinput.Pages(data, 4096)}
		if f.format == rocm.Rocprof {
			s.Cuts = testinput.Tokens(data)
		}
		s.Other, s.OtherCuts = s.Data, s.Cuts
		for seed := range uint64(mutants()) {
			m := s.Mutate(seed)
			if err := os.WriteFile(path, m.Data, 0o644); err != nil {
				t.Fatal(err)
			}
			src, opt, err := index(t, f.format, path, profile.Filter{})
			if err != nil {
				continue
			}
			for _, p := range src.Profiles {
				lines(src, opt, p.Meta.PID)
			}
		}
	}
}

// Real files have the sums that SQLite computes.
func TestSharedRocpd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rocpd01.db")
	if err := os.WriteFile(path, testinput.ReadZstd(t, testinput.Shared(t, "data", "untraced", "rocpd01_synthetic.db.zst")), 0o644); err != nil {
		t.Fatal(err)
	}
	src, opt, err := index(t, rocm.Rocpd, path, profile.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, p := range src.Profiles {
		for _, s := range p.Events {
			got[opt.Syms.Name(s.Cat)] += s.Dur
		}
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for category, table := range map[string]string{"kernel": "kernel_dispatch", "gpu_memcpy": "memory_copy", "user_annotation": "region"} {
		err := sqlitex.Execute(conn, "SELECT sum(end - start) FROM rocpd_"+table+"cc3883073c204c7da65be8c5f67fa23c", &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
			if want := s.ColumnInt64(0); got[category] != want || want == 0 {
				t.Errorf("%s: %d ns, want %d", category, got[category], want)
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if p := src.Profiles[0]; cmp.Or(p.Meta.Host, "none") != "test_host" || p.Meta.PID != 1234 || len(p.Instants) != 20 {
		t.Errorf("host %q, pid %d, %d instants", p.Meta.Host, p.Meta.PID, len(p.Instants))
	}
}
