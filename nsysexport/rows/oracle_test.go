package rows

import (
	"cmp"
	"encoding/csv"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/sgtrace/sgtrace/nsysexport/internal/nsystest"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// sharedFiles returns all exports of the shared data.
func sharedFiles(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, dir := range []string{"real", "synth"} {
		files, err := filepath.Glob(testinput.Shared(t, "data", "nsys", dir, "*.sqlite"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, files...)
	}
	return all
}

// Every table in every shared export has the number of rows that SQLite counts.
func TestRowsAreComplete(t *testing.T) {
	for _, path := range sharedFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			e, _, _ := read(t, path)
			checkComplete(t, e, path)
			for _, u := range e.Unread {
				if want := countAll(t, path, u.Name); want != int(u.Rows) {
					t.Errorf("%s is said to have %d rows, not %d", u.Name, u.Rows, want)
				}
			}
		})
	}
}

// The activity of processes is counted as by SQLite.
func TestActive(t *testing.T) {
	for _, path := range sharedFiles(t) {
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		have := s.Active()
		var from []string
		for _, spec := range activeTables() {
			id := "globalTid"
			if spec.columns[opPID].name == "globalPid" {
				id = "globalPid"
			}
			for _, name := range spec.names {
				from = append(from, name+" WHERE "+id+" << 16 != 0")
			}
		}
		total := 0
		for _, n := range have {
			total += int(n)
		}
		if want := countAll(t, path, from...); total != want {
			t.Errorf("%s: %d events of %d processes, want %d", filepath.Base(path), total, len(have), want)
		}
		s.Close()
	}
}

// checkComplete compares the number of rows of an export with SQLite's count.
func checkComplete(t *testing.T, e *export, path string) {
	t.Helper()
	for _, c := range []struct {
		from string
		rows int
	}{
		{"CUPTI_ACTIVITY_KIND_KERNEL", len(e.Kernels)},
		{"CUPTI_ACTIVITY_KIND_RUNTIME + CUPTI_ACTIVITY_KIND_DRIVER", len(e.API)},
		{"CUPTI_ACTIVITY_KIND_MEMCPY", len(e.Memcpys)},
		{"CUPTI_ACTIVITY_KIND_MEMSET", len(e.Memsets)},
		{"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", len(e.Syncs)},
		{"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", len(e.GraphRuns)},
		{"CUDA_GRAPH_NODE_EVENTS + CUDA_GRAPH_EVENTS WHERE graphNodeId IS NOT NULL", len(e.GraphNodes)},
		{"OSRT_API", len(e.OS)},
		{"SCHED_EVENTS", len(e.Scheds)},
		{"GPU_METRICS WHERE timestamp IS NOT NULL + NET_NIC_METRIC + NET_IB_SWITCH_METRIC", len(e.Samples)},
		{"NVTX_EVENTS WHERE eventType IN (34, 59, 60, 70, 71)", len(e.Ranges)},
		{"DIAGNOSTIC_EVENT WHERE severity IN (2, 3)", len(e.Messages)},
		{"ThreadNames", len(e.Threads)},
		{"TARGET_INFO_GPU", len(e.Meta.GPUs)},
		{"TARGET_INFO_CUDA_DEVICE", len(e.Meta.Devices)},
	} {
		if want := countAll(t, path, strings.Split(c.from, " + ")...); c.rows != want {
			t.Errorf("%d rows of %s, want %d", c.rows, c.from, want)
		}
	}
}

// countAll counts the rows of tables with SQLite.
func countAll(t *testing.T, path string, tables ...string) (n int) {
	t.Helper()
	conn := nsystest.Connect(t, path)
	for _, from := range tables {
		n += count(t, conn, from)
	}
	return n
}

// count counts with SQLite; a missing table or column has no rows.
func count(t *testing.T, conn *sqlite.Conn, from string) int {
	n := 0
	err := sqlitex.ExecuteTransient(conn, "SELECT count(*) FROM "+from, &sqlitex.ExecOptions{
		ResultFunc: func(stmt *sqlite.Stmt) error {
			n = stmt.ColumnInt(0)
			return nil
		},
	})
	if err != nil && !strings.Contains(err.Error(), "no such table") && !strings.Contains(err.Error(), "no such column") {
		t.Fatal(err)
	}
	return n
}

// A sample collects durations by name.
type sample map[string][]int64

func (s sample) add(name string, d int64) { s[name] = append(s[name], d) }

// row is a row of durations printed by nsys stats.
type row struct{ total, count, med, min, max, dev string }

func summarize(d []int64) row {
	slices.Sort(d)
	sum, n := int64(0), len(d)
	for _, x := range d {
		sum += x
	}
	mean := float64(sum) / float64(n)
	squares := 0.0
	for _, x := range d {
		squares += (float64(x) - mean) * (float64(x) - mean)
	}
	dev := 0.0
	if n > 1 {
		dev = math.Sqrt(squares / float64(n-1))
	}
	text := func(x int64) string { return strconv.FormatInt(x, 10) }
	// Round half away from zero, exactly: half the sum of the two middle values has one fractional
	// digit.
	med := big.NewRat(d[(n-1)/2]+d[n/2], 2).FloatString(1)
	return row{text(sum), strconv.Itoa(n), med, text(d[0]), text(d[n-1]), strconv.FormatFloat(dev, 'f', 1, 64)}
}

// oracle reads the output of nsys stats, keyed by columns; nil if nsys refused.
func oracle(t *testing.T, path, report string, key ...string) map[string]row {
	t.Helper()
	base := strings.TrimSuffix(filepath.Base(path), ".sqlite")
	file := filepath.Join(filepath.Dir(testinput.Shared(t, "data", "nsys", "README.md")), "stats", base, report+".csv")
	f, err := os.Open(file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := func(line []string, names ...string) string {
		for _, n := range names {
			if i := slices.Index(lines[0], n); i >= 0 {
				return line[i]
			}
		}
		t.Fatalf("%s has none of the columns %v", file, names)
		return ""
	}
	rows := map[string]row{}
	for _, l := range lines[1:] {
		var k []string
		for _, name := range key {
			k = append(k, at(l, name))
		}
		rows[strings.Join(k, "|")] = row{
			at(l, "Total Time (ns)"), at(l, "Instances", "Num Calls", "Count"), at(l, "Med (ns)"), at(l, "Min (ns)"),
			at(l, "Max (ns)"), at(l, "StdDev (ns)"),
		}
	}
	return rows
}

func (s sample) compare(t *testing.T, want map[string]row) {
	t.Helper()
	if want == nil {
		return
	}
	var names []string
	for n := range s {
		names = append(names, n)
	}
	slices.SortFunc(names, cmp.Compare)
	for _, n := range names {
		if got := summarize(s[n]); got != want[n] {
			t.Errorf("%q: %+v, nsys stats has %+v", n, got, want[n])
		}
		delete(want, n)
	}
	for n, w := range want {
		t.Errorf("%q is missing; nsys stats has %+v", n, w)
	}
}

// Sums equal those of nsys stats to the nanosecond.
func TestSumsEqualNsysStats(t *testing.T) {
	reports := 0
	for _, path := range sharedFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			e, names, _ := read(t, path)
			kernels, calls, ranges, memory := sample{}, sample{}, sample{}, sample{}
			for _, k := range e.Kernels {
				kernels.add(names.Name(k.Name), int64(k.End-k.Start))
			}
			for _, c := range e.API {
				calls.add(APIName(names.Name(c.Name)), int64(c.End-c.Start))
			}
			for _, r := range e.Ranges {
				style := [...]string{"", "PushPop", "StartEnd"}[r.Kind]
				name := names.Name(r.Text)
				if r.Domain != 0 {
					name = names.Name(r.Domain) + ":" + name
				}
				if r.Kind != MarkInstant {
					ranges.add(style+"|"+name, int64(r.End-r.Start))
				}
			}
			for _, m := range e.Memcpys {
				name, _ := profile.CopyOperation(m.Direction.String())
				memory.add(name, int64(m.End-m.Start))
			}
			for _, m := range e.Memsets {
				memory.add("[CUDA memset]", int64(m.End-m.Start))
			}
			for _, r := range []struct {
				got  sample
				want map[string]row
			}{
				{kernels, oracle(t, path, "cuda_gpu_kern_sum", "Name")},
				{calls, oracle(t, path, "cuda_api_sum", "Name")},
				{ranges, oracle(t, path, "nvtx_sum", "Style", "Range")},
				{memory, oracle(t, path, "cuda_gpu_mem_time_sum", "Operation")},
			} {
				if r.want != nil {
					reports++
				}
				r.got.compare(t, r.want)
			}
		})
	}
	t.Logf("%d reports compared", reports)
}
