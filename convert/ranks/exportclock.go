package ranks

import (
	"cmp"
	"path/filepath"

	"github.com/sgtrace/sgtrace/profile"
)

// An ExportClock relates the clock of an Nsight Systems export to that of a PyTorch
// trace of one of its processes: they recorded the same kernels. The start of a
// session, from which an export counts, may be missing, and it is Unix time only as
// of then, while the clock of the host has been adjusted since. Or it is the trace
// that does not tell what its times count from.
type exportClock struct {
	Name  string
	Trace *Capture
	Shift Shift
	// Host is where the export is from, and Clock that host's, if it is what places
	// the trace.
	Host  string
	Clock int
}

// noteExportClock notes what a pair says about the clock of an export, if no other
// says more.
func (m *Assignment) noteExportClock(n, t *Capture, p *pair) {
	if p.duplicates == nil || isNone(&p.shift) && n.File.Meta.Origin == t.File.Meta.Origin && t.known.Host != "" {
		return
	}
	x := &exportClock{Name: filepath.Base(n.File.Name), Trace: t, Shift: p.shift}
	if t.File.Meta.Origin == profile.OriginUnknown && n.File.Meta.Origin == profile.OriginUnix {
		x.Host = cmp.Or(n.known.Host, x.Name)
		m.Placed = append(m.Placed, x)
		return
	}
	if have := m.synced[n.File.Source]; have == nil || have.Shift.Matches < p.shift.Matches {
		m.synced[n.File.Source] = x
	}
}

// ExportClock returns the facts about the clock of the export that a capture is from;
// nil is nothing.
func (m *Assignment) ExportClock(c *Capture) *exportClock {
	return m.synced[c.File.Source]
}
