package nsysexport

import (
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// sample adds a value of a counter to the row with a key.
func (r *reader) sample(p *piece, c category, x *profile.CounterValue, key rowKey, fresh func() profile.Row) {
	row := p.row(key, fresh)
	p.saw(x.Time, x.Time)
	name := trace.Sym(0)
	if r.filter.Names != nil {
		name = r.syms.Intern(p.rows[row].Name)
	}
	if r.keepsAny(c, name, x.Time, x.Time) {
		p.samples.add(profile.CounterSample{Time: x.Time, Value: x.Value, Row: row})
	}
}

// possible reports whether a counter can have a value at a time.
func (w *walk) possible(at trace.Time) bool {
	if !profile.IsPossible(at) && w.lenient {
		w.src.Diag(trace.NsysTime, "", 0, at, at)
	}
	return profile.IsPossible(at)
}

// metrics passes the metrics of GPUs and network cards.
func (w *walk) metrics(yield func(x *profile.CounterValue, number int32, m *rows.Metric) bool) {
	var known []profile.CounterValue // by metric
	w.src.Samples(func(s *rows.Sample, metrics []rows.Metric) bool {
		for len(known) < len(metrics) {
			known = append(known, w.metric(&metrics[len(known)]))
		}
		out := &known[s.Metric]
		out.Time, out.Value = s.Time, s.Value
		return !w.possible(s.Time) || yield(out, s.Metric, &metrics[s.Metric])
	})
}

// metric returns a sample of a metric without time and value.
func (w *walk) metric(m *rows.Metric) profile.CounterValue {
	syms := w.src.Options.Syms
	name, unit := nameAndUnit(m.Name)
	x := profile.CounterValue{Rank: -1, Name: syms.Intern(name), Unit: syms.Intern(unit), Kind: profile.NetworkCounter}
	source := m.Source
	if m.GPU >= 0 {
		source = "GPU " + numberText(m.GPU)
		x.Rank, x.Kind = w.userOf(m.GPU), profile.DeviceCounter
	}
	if host := w.src.Meta.HostName(); host != "" && x.Rank < 0 {
		source += " of " + host
	}
	x.Source = syms.Intern(source)
	return x
}

// userOf returns the rank of the process that uses a GPU, if it is the GPU's only user and uses no other GPU;
// -1 otherwise.
func (w *walk) userOf(gpu int32) int32 {
	user := int32(-1)
	for _, d := range w.src.Meta.Devices {
		switch {
		case d.GPU != int64(gpu):
		case user >= 0 && d.PID != user:
			return -1
		default:
			user = d.PID
		}
	}
	for _, d := range w.src.Meta.Devices {
		if d.PID == user && d.GPU != int64(gpu) {
			return -1
		}
	}
	if user < 0 {
		return -1
	}
	return w.rankOf(user)
}

// metrics reads the metrics of GPUs and network cards.
func (r *reader) metrics() {
	p, c := r.piece(machine), r.category("counter")
	r.walk().metrics(func(x *profile.CounterValue, number int32, m *rows.Metric) bool {
		r.sample(p, c, x, rowKey{layerMetric, uint32(number), 0}, func() profile.Row {
			source := m.Source
			if m.GPU >= 0 {
				source = "GPU " + numberText(m.GPU)
				for _, g := range r.src.Meta.GPUs {
					if g.ID == int64(m.GPU) && g.Name != "" {
						source += " (" + g.Name + ")"
					}
				}
			}
			// Sort by the numbers of metrics, which is the order in which nsys lists them.
			return profile.Row{Kind: profile.RowCounter, PIDText: m.Source, Name: r.syms.Name(x.Name), Unit: r.syms.Name(x.Unit), Folder: source, Sort: int64(number)}
		})
		return true
	})
}

// nameAndUnit splits "SMs Active [Throughput %]".
func nameAndUnit(metric string) (name, unit string) {
	name, unit, ok := strings.Cut(strings.TrimSuffix(metric, "]"), " [")
	if !ok || !strings.HasSuffix(metric, "]") {
		return metric, ""
	}
	if strings.HasSuffix(unit, "%") {
		unit = "%"
	}
	return name, unit
}

// memory passes the amount of GPU memory in use, computed from the allocations and frees since the recording
// began. CUDA gives this memory to allocators, which hold it for tensors.
func (w *walk) memory(yield func(*profile.CounterValue, *rows.MemoryEvent) bool) (more bool) {
	type memory struct {
		pid, device int32
		kind        profile.Memory
	}
	syms := w.src.Options.Syms
	bytes := syms.Intern("bytes")
	counters := map[memory]*profile.CounterValue{}
	more = true
	w.src.MemoryEvents(func(m *rows.MemoryEvent) bool {
		key := memory{m.PID, m.Device, m.Kind}
		x := order.Memo(counters, key, func() *profile.CounterValue {
			return &profile.CounterValue{Rank: w.rankOf(m.PID), Source: syms.Intern("GPU " + numberText(m.Device)), Name: syms.Intern("memory in use: " + m.Kind.String()), Unit: bytes, Kind: profile.MemoryCounter}
		})
		x.Time, x.Value = m.Time, x.Value+float64(m.Bytes)
		if x.Rank >= 0 && w.possible(m.Time) {
			more = yield(x, m)
		}
		return more
	})
	return more
}

func (r *reader) memory() {
	c := r.category("counter")
	r.walk().memory(func(x *profile.CounterValue, m *rows.MemoryEvent) bool {
		p := r.pieces[x.Rank]
		r.sample(p, c, x, rowKey{layerMemory, uint32(m.Device), uint32(m.Kind)}, func() profile.Row {
			return profile.Row{Kind: profile.RowCounter, PID: int64(p.pid), PIDText: numberText(p.pid), Process: r.known().processName(p.pid),
				Name: "memory allocated (" + m.Kind.String() + ") on GPU " + numberText(m.Device), Unit: "bytes", Folder: r.gpuFolder(p.pid, m.Device)}
		})
		return true
	})
}
