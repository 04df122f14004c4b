package kernel

import (
	"bytes"
	"encoding/csv"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testexport"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// A csvTable is a CSV file as rows by column name.
type csvTable struct {
	header []string
	lines  [][]string
}

func readTable(t *testing.T, data []byte) csvTable {
	t.Helper()
	all, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil || len(all) == 0 {
		t.Fatalf("no CSV: %v", err)
	}
	return csvTable{all[0], all[1:]}
}

func (tab *csvTable) column(t *testing.T, name string) int {
	t.Helper()
	i := slices.Index(tab.header, name)
	if i < 0 {
		t.Fatalf("no column %q among %q", name, tab.header)
	}
	return i
}

// A match says which of our columns must equal a column of nsys stats.
type match struct {
	theirs, ours string
	convert      func(string) string // converts our value; nil keeps it
}

// percent converts a share with six decimals to nsys stats' percentage.
func percent(share string) string {
	r, _ := new(big.Rat).SetString(share)
	return r.Mul(r, big.NewRat(100, 1)).FloatString(1)
}

// megabytes converts bytes to nsys stats' size.
func megabytes(bytes string) string {
	r, _ := new(big.Rat).SetString(bytes)
	return r.Quo(r, big.NewRat(1e6, 1)).FloatString(3)
}

// nsysDistribution matches the columns of a distribution. theirs and ours are
// prefixes of the column names, suffix ends our keys.
func nsysDistribution(theirs, ours, unit, suffix string, convert func(string) string) []match {
	var out []match
	for _, c := range [][2]string{{"Avg", "avg"}, {"Med", "med"}, {"Min", "min"}, {"Max", "max"}, {"StdDev", "stddev"}} {
		out = append(out, match{theirs + c[0] + unit, ours + c[1] + suffix, convert})
	}
	return out
}

// An oracle is a report of nsys stats, and the report of ours that must equal it.
type oracle struct {
	report  string
	make    func(*profile.Set) *table.Table
	key     []match
	columns []match
	// except returns why a difference is an error in nsys stats; "" if it is not.
	except func(file, key, column, theirs, ours string) string
	// missing returns why a row of nsys stats is not in our report.
	missing func(key string) string
	// extra returns why a row of our report is not in nsys stats.
	extra func(key string) string
}

var oracles = []oracle{
	{
		report:  "cuda_gpu_kern_sum",
		make:    func(s *profile.Set) *table.Table { return SumKernels(s, profilewalk.Options{}).Report() },
		key:     []match{{"Name", "kernel", nil}},
		columns: append(nsysDistribution("", "", " (ns)", "_ns", nil), match{"Total Time (ns)", "total_ns", nil}, match{"Instances", "instances", nil}, match{"Time (%)", "time", percent}),
		except: func(file, _, column, _, _ string) string {
			if column == "Time (%)" && file == "s_v2022_graph" {
				return "it leaves graphs out of the whole"
			}
			return ""
		},
		extra: func(key string) string {
			if strings.HasPrefix(key, "CUDA graph ") {
				return "it leaves graphs out"
			}
			return ""
		},
	},
	{
		report:  "cuda_api_sum",
		make:    func(s *profile.Set) *table.Table { return SumCalls(s, profilewalk.Options{}).Report() },
		key:     []match{{"Name", "call", nil}},
		columns: append(nsysDistribution("", "", " (ns)", "_ns", nil), match{"Total Time (ns)", "total_ns", nil}, match{"Num Calls", "instances", nil}, match{"Time (%)", "time", percent}),
	},
	{
		report:  "cuda_gpu_mem_time_sum",
		make:    func(s *profile.Set) *table.Table { return SumCopies(s, profilewalk.Options{}).Reports()[0] },
		key:     []match{{"Operation", "operation", nil}},
		columns: append(nsysDistribution("", "", " (ns)", "_ns", nil), match{"Total Time (ns)", "total_ns", nil}, match{"Count", "instances", nil}, match{"Time (%)", "time", percent}),
	},
	{
		report:  "cuda_gpu_mem_size_sum",
		make:    func(s *profile.Set) *table.Table { return SumCopies(s, profilewalk.Options{}).Reports()[0] },
		key:     []match{{"Operation", "operation", nil}},
		columns: append(nsysDistribution("", "size_", " (MB)", "_bytes", megabytes), match{"Total (MB)", "size_total_bytes", megabytes}, match{"Count", "size_instances", nil}),
	},
	{
		report:  "nvtx_sum",
		make:    func(s *profile.Set) *table.Table { return SumRanges(s, profilewalk.Options{Open: true}).Report() },
		key:     []match{{"Style", "style", nil}, {"Range", "range", nil}},
		columns: append(nsysDistribution("", "", " (ns)", "_ns", nil), match{"Total Time (ns)", "total_ns", nil}, match{"Instances", "instances", nil}, match{"Time (%)", "time", percent}),
	},
	{
		report: "nvtx_gpu_proj_sum",
		make: func(s *profile.Set) *table.Table {
			sums := SumRanges(s, profilewalk.Options{Open: true})
			sums.Rows = slices.DeleteFunc(sums.Rows, func(r RangeSum) bool { return r.Projected.N == 0 })
			return sums.Report()
		},
		key: []match{{"Style", "style", nil}, {"Range", "range", nil}},
		columns: append(nsysDistribution("Proj ", "proj_", " (ns)", "_ns", nil), match{"Total Proj Time (ns)", "proj_total_ns", nil},
			match{"Total Range Time (ns)", "proj_range_total_ns", nil}, match{"Range Instances", "proj_instances", nil}, match{"Total GPU Ops", "ops", nil},
			match{"Avg GPU Ops", "ops_avg", nil}, match{"Avg Range Lvl", "level_avg", nil}, match{"Avg Num Child", "children_avg", nil}),
	},
	{
		report: "nvtx_kern_sum",
		make: func(s *profile.Set) *table.Table {
			return SumRangeKernels(s, profilewalk.Options{Open: true, ByRank: true}).Report()
		},
		key:     []match{{"NVTX Range", "range", nil}, {"Style", "style", nil}, {"PID", "pid", nil}, {"TID", "tid", nil}, {"Kernel Name", "kernel", nil}},
		columns: append(nsysDistribution("", "", " (ns)", "_ns", nil), match{"Total Time (ns)", "total_ns", nil}, match{"Kern Inst", "instances", nil}, match{"NVTX Inst", "ranges", nil}),
		missing: func(key string) string {
			if key == "||||" {
				return "kernels without a range, which we tell in a footnote"
			}
			return ""
		},
	},
	{
		report: "cuda_kern_exec_sum",
		make:   func(s *profile.Set) *table.Table { return SumLaunches(s, profilewalk.Options{ByRank: true}).Report() },
		key:    []match{{"PID", "pid", nil}, {"TID", "tid", nil}, {"DevId", "device", nil}, {"API Name", "call", nil}, {"Kernel Name", "kernel", nil}},
		columns: slices.Concat(nsysDistribution("T", "", " (ns)", "_ns", nil), nsysDistribution("A", "call_", " (ns)", "_ns", nil),
			nsysDistribution("Q", "queue_", " (ns)", "_ns", nil), nsysDistribution("K", "kernel_", " (ns)", "_ns", nil),
			[]match{{"Count", "instances", nil}, {"QCount", "queue_instances", nil}}),
		except: func(_, _, column, theirs, ours string) string {
			if column == "QStdDev (ns)" && theirs == "0.0" && ours == "" {
				return "it gives no values a standard deviation of 0"
			}
			return ""
		},
	},
}

// Every number equals what nsys stats 2023.4 prints for the same file.
func TestSumsEqualNsysStats(t *testing.T) {
	var files []string
	for _, dir := range []string{"real", "synth"} {
		found, err := filepath.Glob(testinput.Shared(t, "data", "nsys", dir, "*.sqlite"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	tables, cells := 0, 0
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".sqlite")
		dir := filepath.Join(filepath.Dir(filepath.Dir(path)), "stats", name)
		t.Run(name, func(t *testing.T) {
			set := testexport.Set(t, path)
			for _, o := range oracles {
				data, err := os.ReadFile(filepath.Join(dir, o.report+".csv"))
				if os.IsNotExist(err) {
					continue // nsys refused, or had nothing to print
				}
				if err != nil {
					t.Fatal(err)
				}
				tables++
				cells += o.compare(t, name, set, readTable(t, data))
			}
		})
	}
	t.Logf("%d tables, %d cells compared", tables, cells)
}

// compare returns the number of cells that were compared.
func (o *oracle) compare(t *testing.T, file string, set *profile.Set, want csvTable) (cells int) {
	got := readTable(t, []byte(testset.Text(t, o.make(set), table.FormatCSV, table.Style{})))
	key := func(tab *csvTable, line []string, column func(match) string) string {
		var parts []string
		for _, k := range o.key {
			parts = append(parts, line[tab.column(t, column(k))])
		}
		return strings.Join(parts, "|")
	}
	ours := map[string][]string{}
	for _, l := range got.lines {
		ours[key(&got, l, func(m match) string { return m.ours })] = l
	}
	if len(ours) != len(got.lines) {
		t.Errorf("%s: %d rows with %d keys", o.report, len(got.lines), len(ours))
	}
	for _, l := range want.lines {
		k := key(&want, l, func(m match) string { return m.theirs })
		mine, ok := ours[k]
		if !ok {
			if o.missing == nil || o.missing(k) == "" {
				t.Errorf("%s: no row %q", o.report, k)
			}
			continue
		}
		delete(ours, k)
		for _, c := range o.columns {
			cells++
			g, w := mine[got.column(t, c.ours)], l[want.column(t, c.theirs)]
			if c.convert != nil && g != "" {
				g = c.convert(g)
			}
			if g != w && (o.except == nil || o.except(file, k, c.theirs, w, g) == "") {
				t.Errorf("%s: %s of %q is %s, nsys stats prints %s", o.report, c.theirs, k, strconv.Quote(g), strconv.Quote(w))
			}
		}
	}
	for k := range ours {
		if o.extra == nil || o.extra(k) == "" {
			t.Errorf("%s: nsys stats has no row %q", o.report, k)
		}
	}
	return cells
}
