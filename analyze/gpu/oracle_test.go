package gpu

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// An htaOracle is one folder of tables that Holistic Trace Analysis computed.
type htaOracle struct {
	dir    string
	run    htaRun
	ranks  [][]htaEvent
	gpus   *GPUs
	counts map[string]int // values compared, by table
}

func openHTAOracle(t *testing.T, dir string) *htaOracle {
	t.Helper()
	o := &htaOracle{dir: dir, counts: map[string]int{}}
	raw, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &o.run); err != nil {
		t.Fatal(err)
	}
	o.ranks = htaLoad(t, &o.run)
	return o
}

// GPU measures equal the tables of Holistic Trace Analysis, for the events that it loads and with its classes.
func TestGPUsAsHTA(t *testing.T) {
	dirs, _ := filepath.Glob(testinput.Shared(t, "data/torch/hta_expected", "*"))
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			o := openHTAOracle(t, dir)
			o.gpus = Measure(htaSet(o.ranks, nil, false), Options{Classes: kernelname.HTAClasses()})
			o.temporal(t)
			o.overlap(t)
			o.types(t)
			o.kernels(t, "COMPUTATION", "COMMUNICATION", "MEMORY")
			o.idle(t)
			o.launches(t)
			t.Logf("values equal: %v", o.counts)
		})
	}
}

// gpu returns the device of a rank; in an oracle, each rank has at most one.
func (o *htaOracle) gpu(rank string) *GPU {
	for i := range o.gpus.GPUs {
		if o.gpus.GPUs[i].Rank == rank {
			return &o.gpus.GPUs[i]
		}
	}
	return &GPU{}
}

// same compares a value, with a tolerance of slack.
func (o *htaOracle) same(t *testing.T, table, what string, got, want, slack int64) {
	t.Helper()
	if diff := got - want; diff > slack || diff < -slack {
		t.Errorf("%s: %s is %d, want %d, within %d", table, what, got, want, slack)
		return
	}
	o.counts[table]++
}

// inverted returns the number of events of a rank, or of one of its streams, that rounding
// inverted: those shorter than 1 us that end 1 us before they start. Holistic Trace
// Analysis adds their negative durations, and sees 1 us more of idle time around each.
func (o *htaOracle) inverted(rank, stream string) int64 {
	n := int64(0)
	r, _ := strconv.Atoi(rank)
	for i := range o.ranks[r] {
		if e := &o.ranks[r][i]; e.onGPU() && e.end < e.start && (stream == "" || fmt.Sprint(e.stream) == stream) {
			n++
		}
	}
	return n
}

func (o *htaOracle) temporal(t *testing.T) {
	const table = "temporal_breakdown"
	for _, row := range htaTable(t, o.dir, table+".csv") {
		g := o.gpu(row["rank"])
		slack := 1000 * o.inverted(row["rank"], "")
		idle, length, compute := g.Idle.Total(), g.Length(), g.Time(kernelname.ClassCompute)
		o.same(t, table, "idle", idle, us(t, row["idle_time(us)"]), slack)
		o.same(t, table, "compute", compute, us(t, row["compute_time(us)"]), slack)
		o.same(t, table, "non-compute", length-compute-idle, us(t, row["non_compute_time(us)"]), slack)
		o.same(t, table, "length", length, us(t, row["kernel_time(us)"]), 0)
	}
}

func (o *htaOracle) overlap(t *testing.T) {
	const table = "comm_comp_overlap"
	for _, row := range htaTable(t, o.dir, table+".csv") {
		g := o.gpu(row["rank"])
		comm := g.Time(kernelname.ClassCommunication)
		got := ""
		if comm > 0 {
			hidden := comm - g.Exposed(kernelname.ClassCommunication)
			got = strconv.FormatFloat(math.Round(10_000*distribution.Fraction(hidden, comm))/100, 'f', -1, 64)
		}
		if want := row["comp_comm_overlap_pctg"]; got != want {
			t.Errorf("%s: %q %%, want %q %%", table, got, want)
			continue
		}
		o.counts[table]++
	}
}

// htaRunning returns the name that Holistic Trace Analysis uses for classes that run
// at once. It has none for anything outside of its three classes.
func htaRunning(r Running) string {
	var words []string
	for _, c := range []struct {
		class kernelname.Class
		word  string
	}{{kernelname.ClassCompute, "COMPUTATION"}, {kernelname.ClassCommunication, "COMMUNICATION"}, {kernelname.ClassMemory, "MEMORY"}} {
		if r.Has(c.class) {
			words = append(words, c.word)
		}
	}
	return strings.Join(words, " overlapping ")
}

func (o *htaOracle) types(t *testing.T) {
	const table = "kernel_type_breakdown"
	rows := htaTable(t, o.dir, table+".csv")
	if rows == nil {
		return
	}
	got := map[string]int64{}
	for i := range o.gpus.GPUs {
		for r, time := range o.gpus.GPUs[i].Running {
			got[htaRunning(Running(r))] += time
		}
	}
	for _, row := range rows {
		what := row["kernel_type"]
		want := us(t, row["sum"])
		slack := int64(0)
		if !o.run.rounds() {
			// It truncates every piece to whole us, which loses up to 1 us each:
			// every piece begins or ends with an event.
			want, slack = want+o.events()*1000/2, o.events()*1000/2
		}
		for rank := range o.ranks {
			slack += 2000 * o.inverted(strconv.Itoa(rank), "")
		}
		o.same(t, table, what, got[what], want, slack)
	}
}

// events returns the number of events on devices.
func (o *htaOracle) events() int64 {
	n := int64(0)
	for i := range o.gpus.GPUs {
		n += o.gpus.GPUs[i].Rows
	}
	return n
}

func (o *htaOracle) kernels(t *testing.T, types ...string) {
	const table = "kernel_breakdown_all"
	rows := map[string]*RankKernel{}
	for i := range o.gpus.Kernels {
		k := &o.gpus.Kernels[i]
		rows[k.Rank+" "+k.Name] = k
	}
	for _, row := range htaTable(t, o.dir, table+".csv") {
		k := rows[row["rank"]+" "+row["name"]]
		if !slices.Contains(types, row["kernel_type"]) {
			continue
		}
		if k == nil {
			t.Errorf("%s: no %s", table, row["name"])
			continue
		}
		if want := map[string]string{"compute": "COMPUTATION", "communication": "COMMUNICATION", "memory": "MEMORY"}[k.Class.String()]; want != row["kernel_type"] {
			t.Errorf("%s: %s is %s, want %s", table, k.Name, want, row["kernel_type"])
		}
		stdDev := max(0, k.Summary.StdDev) // for a single value, Holistic Trace Analysis has 0
		if us(t, row["min (us)"]) < 0 {
			t.Logf("%s: %s has negative durations there", table, k.Name)
			continue
		}
		o.same(t, table, k.Name+" sum", k.Summary.Total, us(t, row["sum (us)"]), 0)
		o.same(t, table, k.Name+" max", k.Summary.Max, us(t, row["max (us)"]), 0)
		o.same(t, table, k.Name+" min", k.Summary.Min, us(t, row["min (us)"]), 0)
		o.same(t, table, k.Name+" mean", k.Summary.Mean, us(t, row["mean (us)"]), 1)
		o.same(t, table, k.Name+" stddev", stdDev, us(t, row["stddev"]), 1)
	}
}

func (o *htaOracle) idle(t *testing.T) {
	gpus := Measure(htaSet(o.ranks, nil, true), Options{})
	causes := map[string]IdleCause{"host_wait": HostWait, "kernel_wait": KernelWait, "other": OtherWait}
	of := func(row map[string]string) (Idle, IdleCause, string) {
		what := fmt.Sprintf("rank %s stream %s %s", row["rank"], row["stream"], row["idle_category"])
		for i := range gpus.GPUs {
			for _, s := range gpus.GPUs[i].Streams {
				if gpus.GPUs[i].Rank == row["rank"] && fmt.Sprint(s.Stream) == row["stream"] {
					return s.Idle, causes[row["idle_category"]], what
				}
			}
		}
		t.Errorf("no stream %s of rank %s", row["stream"], row["rank"])
		return Idle{}, 0, what
	}
	decimals := int64(0)
	if !o.run.rounds() {
		decimals = 5 // that table has 2 decimals
	}
	for _, row := range htaTable(t, o.dir, "idle_time_breakdown.csv") {
		idle, cause, what := of(row)
		o.same(t, "idle_time_breakdown", what, idle.Time[cause], us(t, row["idle_time"]), 1000*o.inverted(row["rank"], row["stream"])+decimals)
	}
	for _, row := range htaTable(t, o.dir, "idle_interval_stats.csv") {
		idle, cause, what := of(row)
		n, _ := strconv.ParseFloat(row["count"], 64)
		o.same(t, "idle_interval_stats", what+" gaps", idle.Gaps[cause], int64(n), min(1, o.inverted(row["rank"], row["stream"])))
	}
}

// htaLaunches reports whether a call is in the launch statistics of Holistic Trace Analysis.
func htaLaunches(name string) bool {
	switch name {
	case "cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync", "runFunction - job_prep_and_submit_for_execution":
		return true
	}
	return false
}

func (o *htaOracle) launches(t *testing.T) {
	const table = "launch_stats_summary"
	gpus := Measure(htaSet(o.ranks, htaLaunches, false), Options{})
	for _, row := range htaTable(t, o.dir, table+".csv") {
		var d distribution.Summary
		for i := range gpus.GPUs {
			if g := &gpus.GPUs[i]; g.Rank == row["rank"] {
				d = g.Delay
			}
		}
		if row["launch_delay"] == "" {
			continue
		}
		want := us(t, row["launch_delay"])
		switch row["stat"] {
		case "count":
			o.same(t, table, "count", int64(d.N)*1000, want, 0)
		case "mean":
			o.same(t, table, "mean", d.Mean, want, 1)
		case "std":
			o.same(t, table, "std", d.StdDev, want, 1)
		case "min":
			o.same(t, table, "min", d.Min, want, 0)
		case "max":
			o.same(t, table, "max", d.Max, want, 0)
		}
	}
}
