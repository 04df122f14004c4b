package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// An Inventory is what files of profilers hold, collected one after another.
type Inventory struct {
	exports    []exportRow
	traces     []traceRow
	processes  []processRow
	gpus       []deviceRow
	tables     []tableRow
	categories []categoryRow
	messages   []messageRow

	together map[sameProcesses]int // in processes
}

// sameProcesses are processes of an export of which nothing but a name is known.
type sameProcesses struct {
	file, name string
	is         profile.Identity
}

// An exportRow is an Nsight Systems export.
type exportRow struct {
	file string
	size int64
	meta profile.Session
}

// A traceRow is a PyTorch trace, or another one in Chrome's format.
type traceRow struct {
	file string
	size int64
	meta profile.Meta
}

// A processRow is a process that was recorded, or several of one name of which nothing
// else is known.
type processRow struct {
	file, name  string
	is          profile.Identity
	n           int64
	pid         int64  // 0 is unknown, or there are several
	world       int32  // -1 is unknown
	gpus        string // that it could use
	events      int64  // -1 is not counted
	first, last trace.Time
	timed       bool
	steps       int64 // -1 is not counted
	collectives int64
}

// A deviceRow is the accelerators of one model that a file describes.
type deviceRow struct {
	file, name string
	ids        []int64
}

// A tableRow is a table of an export.
type tableRow struct {
	file  string
	table profile.Table
}

// A categoryRow is how many events of one category a trace has.
type categoryRow struct {
	file, category string
	events         int64
	extent
}

// A messageRow is what a profiler warned of.
type messageRow struct {
	file    string
	message profile.Message
	timed   bool
}

// Export adds a recording of a machine, such as an Nsight Systems export, and the
// processes that it names.
func (v *Inventory) Export(file string, held *profile.Inventory, size int64, processes []*profile.Profile, are []profile.Identity) {
	v.exports = append(v.exports, exportRow{file, size, held.Session})
	names, gpus := map[int64]string{}, map[int64][]int64{} // by pid
	for _, x := range held.Processes {
		names[x.PID], gpus[x.PID] = x.Name, x.GPUs
	}
	for i, p := range processes {
		row := processRow{file: file, name: names[p.Meta.PID], is: are[i], n: 1, pid: p.Meta.PID, world: p.Meta.WorldSize,
			events: request.Unknown, steps: request.Unknown, collectives: request.Unknown, gpus: list(gpus[p.Meta.PID])}
		if row.world < 0 && len(p.Meta.Hints) > 0 {
			row.world = p.Meta.Hints[0].Size
		}
		if row.pid > 0 || row.is.Rank != trace.NoRank {
			v.addProcess(row)
		}
	}
	for _, g := range held.GPUs {
		v.addDevice(file, g.Name, g.ID)
	}
	for _, t := range held.Tables {
		v.tables = append(v.tables, tableRow{file, t})
	}
	for _, x := range held.Messages {
		v.messages = append(v.messages, messageRow{file, x, held.Session.Absolute})
	}
}

// addProcess adds a process of an export. Everything that ran meanwhile is in some of
// them, down to compilers: those that tell nothing are put together by name.
func (v *Inventory) addProcess(row processRow) {
	if row.is.Rank == trace.NoRank && row.gpus == "" {
		key := sameProcesses{row.file, row.name, row.is}
		if i, ok := v.together[key]; ok {
			v.processes[i].n++
			v.processes[i].pid = 0
			return
		}
		if v.together == nil {
			v.together = map[sameProcesses]int{}
		}
		v.together[key] = len(v.processes)
	}
	v.processes = append(v.processes, row)
}

// addDevice adds an accelerator.
func (v *Inventory) addDevice(file, name string, id int64) {
	for i := range v.gpus {
		if x := &v.gpus[i]; x.file == file && x.name == name {
			x.ids = append(x.ids, id)
			return
		}
	}
	v.gpus = append(v.gpus, deviceRow{file, name, []int64{id}})
}

// list returns numbers as text, with a dash for three and more in a row: "0-7, 9".
func list(numbers []int64) string {
	numbers = slices.Compact(slices.Sorted(slices.Values(numbers)))
	var words []string
	for i := 0; i < len(numbers); {
		end := i + 1
		for end < len(numbers) && numbers[end] == numbers[end-1]+1 {
			end++
		}
		if end-i >= 3 {
			words = append(words, fmt.Sprintf("%d-%d", numbers[i], numbers[end-1]))
			i = end
			continue
		}
		words = append(words, strconv.FormatInt(numbers[i], 10))
		i++
	}
	return strings.Join(words, ", ")
}

// Trace adds a PyTorch trace.
func (v *Inventory) Trace(p *profile.Profile, syms *trace.Symbols, size int64, parts []profile.Identity) {
	v.traces = append(v.traces, traceRow{p.Name, size, p.Meta})
	for _, is := range parts {
		v.processes = append(v.processes, partRow(p, is))
	}
	for _, d := range p.Meta.Devices {
		v.addDevice(p.Name, d.Name, d.ID)
	}
	v.categories = append(v.categories, categoriesOf(p, syms)...)
}

// partRow sums up one part of a trace.
func partRow(p *profile.Profile, is profile.Identity) processRow {
	row := processRow{file: p.Name, is: is, n: 1, pid: p.Meta.PID, world: p.Meta.WorldSize}
	in := make([]bool, len(p.Rows))
	for i := range p.Rows {
		in[i] = p.Rows[i].Part == is.Part
		if k := p.Rows[i].Kind; in[i] && k == profile.RowThread && row.name == "" {
			row.name = p.Rows[i].Process
		}
	}
	var e extent
	for i := range p.Events {
		if s := &p.Events[i]; in[s.Track] {
			e.cover(s.Time, s.End())
		}
	}
	for _, x := range p.Instants {
		if in[x.Track] {
			e.cover(x.Time, x.Time)
		}
	}
	row.events, row.first, row.last = int64(e.spans), e.first, e.last
	row.timed = e.spans > 0 && p.Meta.Origin == profile.OriginUnix
	for _, s := range p.Steps {
		if in[s.Row] && !s.OnGPU {
			row.steps++
		}
	}
	row.collectives = collectivesOf(p, in)
	return row
}

// collectivesOf counts the kernels of collectives, or the calls where there are no
// kernels.
func collectivesOf(p *profile.Profile, in []bool) int64 {
	var n [2]int64
	for _, c := range p.Collectives {
		if in[c.Row] && c.OnGPU {
			n[1]++
		} else if in[c.Row] {
			n[0]++
		}
	}
	if n[1] > 0 {
		return n[1]
	}
	return n[0]
}

// categoriesOf counts the events of a trace by category, most first.
func categoriesOf(p *profile.Profile, syms *trace.Symbols) []categoryRow {
	count := map[string]*categoryRow{}
	add := func(category string, from, to trace.Time) {
		row := count[category]
		if row == nil {
			row = &categoryRow{file: p.Name, category: category}
			count[category] = row
		}
		row.cover(from, to)
	}
	for i := range p.Events {
		e := &p.Events[i]
		add(syms.Name(e.Cat), e.Time, e.End())
	}
	for _, x := range p.Instants {
		add("(instants)", x.Time, x.Time)
	}
	for _, x := range p.Samples {
		add("(counters)", x.Time, x.Time)
	}
	var rows []categoryRow
	for _, row := range count {
		row.events = int64(row.spans)
		if p.Meta.Origin != profile.OriginUnix {
			row.extent = extent{}
		}
		rows = append(rows, *row)
	}
	slices.SortFunc(rows, func(a, b categoryRow) int {
		return cmp.Or(cmp.Compare(b.events, a.events), strings.Compare(a.category, b.category))
	})
	return rows
}

// traceOptions are what is recorded besides events, by the attributes that say so.
var traceOptions = [...]struct{ key, word string }{
	{"record_shapes", "shapes"}, {"with_stack", "stack"}, {"profile_memory", "memory"}, {"with_flops", "flops"}, {"with_modules", "modules"},
}

// attribute returns an attribute of a trace, "" if there is none. Only the keys that
// are asked for are ever shown: users add what they like.
func (t *traceRow) attribute(key string) string {
	for _, a := range t.meta.Attributes {
		if a.Key == key {
			return a.Value
		}
	}
	return ""
}

// options lists what was recorded besides events.
func (t *traceRow) options() string {
	var words []string
	for _, o := range traceOptions {
		if v := t.attribute(o.key); v != "" && v != "0" && v != "false" {
			words = append(words, o.word)
		}
	}
	return strings.Join(words, ", ")
}

// runtime returns the version of the library below PyTorch: "CUDA 12.9".
func (t *traceRow) runtime() string {
	if v, err := strconv.Atoi(t.attribute("cuda_runtime_version")); err == nil && v > 0 {
		return fmt.Sprintf("CUDA %d.%d", v/1000, v%1000/10)
	}
	if v := t.attribute("hip_runtime_version"); v != "" {
		return "HIP " + v
	}
	return ""
}

// producer tells what wrote the trace.
func (t *traceRow) producer() string {
	if t.attribute("schemaVersion") != "" {
		return "PyTorch profiler"
	}
	return "Chrome JSON"
}
