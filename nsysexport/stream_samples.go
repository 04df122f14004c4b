package nsysexport

import (
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// CounterValues yields the memory of GPUs that processes allocated since the recording began, and
// behind it what was sampled from GPUs and network cards. GPUs are those of the machine,
// unless only one process is known to use them.
func (st stream) CounterValues(yield func(*profile.CounterValue) bool) {
	if st.memory(yield) {
		st.metrics(yield)
	}
}

// memory yields how much memory is in use, until that returns false. CUDA gives it to
// allocators, which hold it for tensors.
func (st stream) memory(yield func(*profile.CounterValue) bool) (more bool) {
	type memory struct {
		pid, device int32
		kind        rows.MemoryKind
	}
	type counter struct {
		inUse        int64
		source, name trace.Sym
	}
	syms := st.src.Options.Syms
	bytes := syms.Intern("bytes")
	counters := map[memory]*counter{}
	more = true
	st.src.MemoryEvents(func(m *rows.MemoryEvent) bool {
		key := memory{m.PID, m.Device, m.Kind}
		c := counters[key]
		if c == nil {
			c = &counter{source: syms.Intern("GPU " + numberText(m.Device)), name: syms.Intern("memory in use: " + m.Kind.String())}
			counters[key] = c
		}
		c.inUse += m.Bytes
		if rank := st.rank(m.PID); rank >= 0 && isTime(m.Time) {
			more = yield(&profile.CounterValue{Time: m.Time, Rank: rank, Source: c.source, Name: c.name, Unit: bytes, Value: float64(c.inUse), Kind: profile.MemoryCounter})
		}
		return more
	})
	return more
}

// metrics yields the metrics of GPUs and network cards.
func (st stream) metrics(yield func(*profile.CounterValue) bool) {
	var known []profile.CounterValue // by metric
	st.src.Samples(func(s *rows.Sample, metrics []rows.Metric) bool {
		for len(known) < len(metrics) {
			known = append(known, st.metric(&metrics[len(known)]))
		}
		out := known[s.Metric]
		out.Time, out.Value = s.Time, s.Value
		return !isTime(s.Time) || yield(&out)
	})
}

// metric returns a sample of a metric without time and value.
func (st stream) metric(m *rows.Metric) profile.CounterValue {
	syms := st.src.Options.Syms
	name, unit := nameAndUnit(m.Name)
	x := profile.CounterValue{Rank: -1, Name: syms.Intern(name), Kind: profile.NetworkCounter}
	if unit != "" {
		x.Unit = syms.Intern(unit)
	}
	source := m.Source
	if m.GPU >= 0 {
		source = "GPU " + numberText(m.GPU)
		x.Rank, x.Kind = st.userOf(m.GPU), profile.DeviceCounter
	}
	if host := st.src.Meta.HostName(); host != "" && x.Rank < 0 {
		source += " of " + host
	}
	x.Source = syms.Intern(source)
	return x
}

// userOf returns the rank of the only process that can use a GPU, if it can use no other;
// -1 if there is none.
func (st stream) userOf(gpu int32) int32 {
	user := int32(-1)
	for _, d := range st.src.Meta.Devices {
		switch {
		case d.GPU != int64(gpu):
		case user >= 0 && d.PID != user:
			return -1
		default:
			user = d.PID
		}
	}
	for _, d := range st.src.Meta.Devices {
		if d.PID == user && d.GPU != int64(gpu) {
			return -1
		}
	}
	if user < 0 {
		return -1
	}
	return st.rank(user)
}
