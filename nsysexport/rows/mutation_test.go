package rows

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sgtrace/sgtrace/nsysexport/internal/nsystest"
	"github.com/sgtrace/sgtrace/nsysexport/storage"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// feeds lists the tables that each field of an export is read from.
var feeds = map[string][]string{
	"Kernels": {"CUPTI_ACTIVITY_KIND_KERNEL"}, "API": {"CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"},
	"OS": {"OSRT_API"}, "Memcpys": {"CUPTI_ACTIVITY_KIND_MEMCPY"}, "Memsets": {"CUPTI_ACTIVITY_KIND_MEMSET"},
	"Syncs": {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"}, "GraphRuns": {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE"},
	"GraphNodes": {"CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS"}, "Ranges": {"NVTX_EVENTS", "NVTX_PAYLOAD_SCHEMA_ENTRIES"},
	"Scheds": {"SCHED_EVENTS"}, "Samples": {"GPU_METRICS", "TARGET_INFO_GPU_METRICS", "NET_NIC_METRIC", "NET_IB_SWITCH_METRIC",
		"TARGET_INFO_NETWORK_METRICS", "NIC_ID_MAP", "TARGET_INFO_NIC_INFO"},
	"MemoryEvents": {"CUDA_GPU_MEMORY_USAGE_EVENTS"}, "Messages": {"DIAGNOSTIC_EVENT"},
	"Libraries": {"PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD", "CUDNN_EVENTS", "CUBLAS_EVENTS", "MPI_P2P_EVENTS",
		"MPI_COLLECTIVES_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS"},
}

// aboutAll are the tables with facts that affect all rows, such as the session start.
var aboutAll = []string{"sqlite_schema", "META_DATA_EXPORT", "EXPORT_META_DATA", "TARGET_INFO_SESSION_START_TIME", "ANALYSIS_DETAILS"}

// rowsOf returns the rows of each field of an export as text.
func rowsOf(e *export, syms *trace.Symbols) map[string][]string {
	rows := map[string][]string{}
	v := reflect.ValueOf(e).Elem()
	for field := range feeds {
		list := v.FieldByName(field)
		text := make([]string, list.Len())
		for i := range text {
			text[i] = rowText(list.Index(i), e, syms)
		}
		rows[field] = text
	}
	return rows
}

// rowText returns a row with names and launches resolved.
func rowText(row reflect.Value, e *export, syms *trace.Symbols) string {
	return string(appendFields(nil, row, e, syms))
}

func appendFields(b []byte, row reflect.Value, e *export, syms *trace.Symbols) []byte {
	for i := range row.NumField() {
		x := row.Field(i)
		switch t := x.Type(); {
		case t == reflect.TypeFor[trace.Sym]():
			b = append(b, syms.Name(trace.Sym(x.Uint()))...)
		case t == reflect.TypeFor[LaunchID]():
			b = appendFields(b, reflect.ValueOf(e.Launches[x.Uint()]), e, syms)
		case t == reflect.TypeFor[trace.ArgsID]():
		case x.Kind() == reflect.Struct:
			b = appendFields(b, x, e, syms)
		case x.CanInt():
			b = strconv.AppendInt(b, x.Int(), 10)
		case x.CanUint():
			b = strconv.AppendUint(b, x.Uint(), 10)
		default:
			b = fmt.Append(b, x)
		}
		b = append(b, ' ')
	}
	return b
}

// An outcome is the result of reading.
type outcome struct {
	err   error
	all   *export
	rows  map[string][]string
	diags []trace.Diag
}

func readOutcome(path string) *outcome {
	opt := Options{Syms: trace.NewSymbols(), Args: trace.NewArgs(), Diags: &trace.Diags{}}
	e, err := open(path, opt)
	if err != nil {
		return &outcome{err: err}
	}
	return &outcome{all: e, rows: rowsOf(e, opt.Syms), diags: opt.Diags.All()}
}

// reported reports whether a diagnostic says that one of the tables lost data.
func (o *outcome) reported(tables ...string) bool {
	return slices.ContainsFunc(o.diags, func(d trace.Diag) bool {
		return d.Severity >= trace.DataLoss && slices.ContainsFunc(tables, func(t string) bool { return strings.HasSuffix(d.Pos.File, ":"+t) })
	})
}

// tally counts mutants by outcome.
type tally struct{ refused, reported, same, silentValues, silentLoss atomic.Int64 }

func (c *tally) String() string {
	return fmt.Sprintf("%d refused, %d reported, %d equal, %d with other values, %d with fewer rows unnoticed",
		c.refused.Load(), c.reported.Load(), c.same.Load(), c.silentValues.Load(), c.silentLoss.Load())
}

// judge reads a mutant and compares it with the undamaged export.
func (c *tally) judge(t *testing.T, m *mutant, whole *outcome, path string) {
	if err := os.WriteFile(path, m.data, 0o644); err != nil {
		t.Error(err)
		return
	}
	got := readOutcome(path)
	if got.err != nil {
		if !m.touched["sqlite_schema"] {
			t.Errorf("%s: refused, although the list of tables is whole: %v", m.name, got.err)
		}
		if !strings.Contains(got.err.Error(), "again") && !errors.Is(got.err, storage.ErrForeign) {
			t.Errorf("%s: does not say what to do: %v", m.name, got.err)
		}
		c.refused.Add(1)
		return
	}
	anyOf := func(tables []string) bool {
		return slices.ContainsFunc(tables, func(s string) bool { return m.touched[s] })
	}
	equal := true
	for field, tables := range feeds {
		if slices.Equal(got.rows[field], whole.rows[field]) {
			continue
		}
		equal = false
		told := got.reported(slices.Concat(tables, aboutAll)...) || slices.ContainsFunc(got.diags, func(d trace.Diag) bool {
			return d.Code == "nsys-truncated" || m.touched["StringIds"] && (d.Code == "nsys-name-missing" || strings.HasSuffix(d.Pos.File, ":StringIds"))
		})
		switch fewer := len(got.rows[field]) < len(whole.rows[field]); {
		case !anyOf(tables) && !anyOf(aboutAll) && !m.touched["StringIds"]:
			t.Errorf("%s: %s differs, although its pages are whole; %v are not: %v", m.name, field, m.touched, got.diags)
		case told:
		case m.flipped && !fewer:
			c.silentValues.Add(1)
			return
		case m.flipped:
			c.silentLoss.Add(1)
			t.Logf("%s: %d of %d rows of %s, and no word: %v", m.name, len(got.rows[field]), len(whole.rows[field]), field, got.diags)
			return
		default:
			t.Errorf("%s (%v): %d of %d rows of %s, and no word: %v", m.name, m.touched, len(got.rows[field]), len(whole.rows[field]), field, got.diags)
		}
	}
	if equal {
		c.same.Add(1)
	} else {
		c.reported.Add(1)
	}
}

// mutants judges n mutants of an export.
func mutants(t *testing.T, path string, n int) {
	s, whole := newSubject(t, path), readOutcome(path)
	if whole.err != nil {
		t.Fatal(whole.err)
	}
	var c tally
	var wg sync.WaitGroup
	next := atomic.Int64{}
	for range 2 {
		wg.Go(func() {
			dir, err := os.MkdirTemp(t.TempDir(), "")
			if err != nil {
				t.Error(err)
				return
			}
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				c.judge(t, s.mutate(uint64(i)), whole, filepath.Join(dir, "mutant.sqlite"))
			}
		})
	}
	wg.Wait()
	t.Logf("%d mutants: %v", n, &c)
}

// Any damage gives an error that says what to do, or the rows of undamaged tables and a diagnostic
// about the others.
func TestMutants(t *testing.T) {
	mutants(t, nsystest.Database(t, nsystest.EveryTable(150)), mutantCount(t, 24*testinput.Kinds()))
}

// The same holds for real exports.
func TestRealMutants(t *testing.T) {
	files, _ := filepath.Glob(testinput.Shared(t, "data", "nsys", "real", "*.sqlite"))
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) { mutants(t, path, mutantCount(t, 8)) })
	}
}

// mutantCount returns n, unless the environment overrides it.
func mutantCount(t *testing.T, n int) int {
	if text := os.Getenv("SGTRACE_MUTANTS"); text != "" {
		more, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return more
	}
	return n
}
