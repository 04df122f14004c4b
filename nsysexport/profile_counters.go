package nsysexport

import (
	"strings"

	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// sample adds a value of a counter.
func (r *reader) sample(p *piece, c category, row int32, at trace.Time, value float64) {
	if !isTime(at) {
		r.impossible(at, at)
		return
	}
	p.saw(at, at)
	if r.keepsAny(c, r.counterName(p, row), at, at) {
		p.samples.add(trace.Sample{Time: at, Value: value, Track: trace.TrackID(row)})
	}
}

// counterName returns the name of a counter for the filter, if that asks.
func (r *reader) counterName(p *piece, row int32) trace.Sym {
	if r.filter.Names == nil {
		return 0
	}
	return r.syms.Intern(p.rows[row].Name)
}

// samples reads the metrics of GPUs and network cards.
func (r *reader) samples() {
	p, c := r.piece(machine), r.category("counter")
	for s, metrics := range r.src.Samples {
		row := p.row(rowKey{layerMetric, uint32(s.Metric), 0}, func() profile.Row {
			m := &metrics[s.Metric]
			name, unit := nameAndUnit(m.Name)
			source := m.Source
			if m.GPU >= 0 {
				source = "GPU " + numberText(m.GPU)
				for _, g := range r.src.Meta.GPUs {
					if g.ID == int64(m.GPU) && g.Name != "" {
						source += " (" + g.Name + ")"
					}
				}
			}
			// The numbers of metrics keep them in the order in which nsys lists them.
			return profile.Row{Kind: profile.RowCounter, PIDText: m.Source, Name: name, Unit: unit, Folder: source, Sort: int64(s.Metric)}
		})
		r.sample(p, c, row, s.Time, s.Value)
	}
	if p.total == 0 {
		delete(r.pieces, machine)
	}
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

// memoryUse reads how much memory of GPUs is in use, from what was allocated and
// freed since the recording began.
func (r *reader) memoryUse() {
	type memory struct {
		pid, device int32
		kind        rows.MemoryKind
	}
	inUse, c := map[memory]int64{}, r.category("counter")
	for m := range r.src.MemoryEvents {
		p := r.piece(m.PID)
		k := memory{m.PID, m.Device, m.Kind}
		inUse[k] += m.Bytes
		row := p.row(rowKey{layerMemory, uint32(m.Device), uint32(m.Kind)}, func() profile.Row {
			return profile.Row{Kind: profile.RowCounter, PID: int64(p.pid), PIDText: numberText(p.pid), Process: r.known().processName(p.pid),
				Name: "memory allocated (" + m.Kind.String() + ") on GPU " + numberText(m.Device), Unit: "bytes", Folder: r.gpuFolder(p.pid, m.Device)}
		})
		r.sample(p, c, row, m.Time, float64(inUse[k]))
	}
}
