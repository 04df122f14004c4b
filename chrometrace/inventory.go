package chrometrace

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/chrometrace/internal/parse"
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Inventory adds a trace that was read from a file of size bytes to an inventory; parts are the identities of
// the ranks in a merged trace, and nil for other traces.
func Inventory(v *inventory.Inventory, p *profile.Profile, syms *trace.Symbols, size int64, parts []profile.Identity) {
	v.Traces = append(v.Traces, inventory.Trace{
		File: p.Name, Size: size, Producer: producer(&p.Meta), Schema: attribute(&p.Meta, "schemaVersion"),
		Runtime: runtimeOf(&p.Meta), Recorded: strings.Join(p.Meta.Recorded, ", "), Host: p.Meta.Host, Backend: p.Meta.Backend,
		Absolute: p.Meta.Origin == profile.OriginUnix,
	})
	for _, is := range parts {
		v.Processes = append(v.Processes, processOf(p, is))
	}
	for _, d := range p.Meta.Devices {
		v.AddDevice(p.Name, d.Name, d.ID)
	}
	v.Categories = append(v.Categories, categoriesOf(p, syms)...)
}

// processOf sums up one part of a trace.
func processOf(p *profile.Profile, is profile.Identity) inventory.Process {
	name, pid, n := p.ProcessOf(is.Part)
	row := inventory.Process{File: p.Name, Name: name, Is: is, N: int64(max(1, n)), PID: pid, World: p.Meta.WorldSize}
	in := order.EachRow(p.Rows, func(r *profile.Row) bool { return r.Part == is.Part })
	var e parse.Bounds
	for i := range p.Events {
		if s := &p.Events[i]; in[s.Place.Row()] {
			e.Add(s.Time, s.End())
		}
	}
	for _, x := range p.Instants {
		if in[x.Row] {
			e.Add(x.Time, x.Time)
		}
	}
	row.Events, row.First, row.Last = int64(e.N), e.First, e.Last
	row.Timed = e.N > 0 && p.Meta.Origin == profile.OriginUnix
	for _, s := range p.Steps {
		if in[s.Row] && !s.OnGPU {
			row.Steps++
		}
	}
	row.Collectives = collectivesOf(p, in)
	return row
}

// collectivesOf counts the kernels of collectives, or the calls if there are no kernels.
func collectivesOf(p *profile.Profile, in []bool) int64 {
	var kernels, calls int64
	for i := range p.Collectives.Len() {
		switch c := p.Collectives.At(i); {
		case !in[c.Row]:
		case c.OnGPU:
			kernels++
		default:
			calls++
		}
	}
	return cmp.Or(kernels, calls)
}

// categoriesOf counts the events of a trace by category, most first.
func categoriesOf(p *profile.Profile, syms *trace.Symbols) []inventory.Category {
	count := map[string]*parse.Bounds{}
	add := func(category string, from, to trace.Time) {
		order.Memo(count, category, func() *parse.Bounds { return &parse.Bounds{} }).Add(from, to)
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
	var rows []inventory.Category
	for name, e := range count {
		rows = append(rows, inventory.Category{File: p.Name, Name: name, Events: int64(e.N),
			First: e.First, Last: e.Last, Timed: p.Meta.Origin == profile.OriginUnix})
	}
	slices.SortFunc(rows, func(a, b inventory.Category) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), strings.Compare(a.Name, b.Name))
	})
	return rows
}

// recordOptions name optional recordings, by the attributes that show them.
var recordOptions = [...]struct{ key, word string }{
	{"record_shapes", "shapes"}, {"with_stack", "stacks"}, {"profile_memory", "memory"}, {"with_flops", "flops"}, {"with_modules", "modules"},
}

// attribute returns an attribute of a trace, "" if there is none. Only the keys that are asked for are ever
// shown: users add what they like.
func attribute(m *profile.Meta, key string) string {
	for _, a := range m.Attributes {
		if a.Key == key {
			return a.Value
		}
	}
	return ""
}

// recorded lists the optional recordings.
func recorded(m *profile.Meta) (words []string) {
	for _, o := range recordOptions {
		if v := attribute(m, o.key); v != "" && v != "0" && v != "false" {
			words = append(words, o.word)
		}
	}
	return words
}

// runtimeOf returns the version of the library below PyTorch: "CUDA 12.9".
func runtimeOf(m *profile.Meta) string {
	if v, err := strconv.Atoi(attribute(m, "cuda_runtime_version")); err == nil && v > 0 {
		return fmt.Sprintf("CUDA %d.%d", v/1000, v%1000/10)
	}
	if v := attribute(m, "hip_runtime_version"); v != "" {
		return "HIP " + v
	}
	return ""
}

// producer returns what wrote the trace.
func producer(m *profile.Meta) string {
	if attribute(m, "schemaVersion") != "" {
		return "PyTorch profiler"
	}
	return "Chrome JSON"
}
