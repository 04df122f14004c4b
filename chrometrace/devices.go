package chrometrace

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Devices of some producers are processes whose events have no category: only the names of
// rows tell what ran where. deviceRows are what they call these: the beginning of the name of
// the process, and of those of its rows that have work; rows beside repeat the same work by
// module, step, or collective.
var deviceRows = []struct{ process, row string }{
	{"Ascend Hardware", ""},      // torch_npu, MindSpore: a row for each stream
	{"/device:TPU:", "XLA Ops"},  // JAX and TensorFlow
	{"/device:GPU:", "Stream #"}, // the same
}

// onDevice reports whether what is on a row without a category ran on a device.
func onDevice(r *profile.Row) bool {
	return slices.ContainsFunc(deviceRows, func(d struct{ process, row string }) bool {
		return strings.HasPrefix(r.Process, d.process) && strings.HasPrefix(r.Name, d.row)
	})
}

// findDevices gives events of devices the categories that Kineto has for them.
func (c *collector) findDevices(f *profile.Profile) {
	device := make([]bool, len(f.Rows))
	for i := range f.Rows {
		if device[i] = onDevice(&f.Rows[i]); device[i] {
			f.Rows[i].Kind = profile.RowStream
		}
	}
	if !slices.Contains(device, true) {
		return
	}
	none, kernel, memcpy := c.opt.Syms.Intern(""), c.opt.Syms.Intern(profile.KernelCategory), c.opt.Syms.Intern(profile.CopyCategories[0])
	waits := map[trace.Sym]bool{}
	for i := range f.Events {
		s := &f.Events[i]
		row := s.Place.Row()
		if s.Cat != none || !device[row] {
			continue
		}
		wait, known := waits[s.Name]
		if !known {
			wait = isWait(c.opt.Syms.Name(s.Name))
			waits[s.Name] = wait
		}
		switch name := strings.ToLower(c.opt.Syms.Name(s.Name)); {
		case wait:
		case strings.HasPrefix(name, "memcpy"):
			s.Cat, s.Place = memcpy, profile.CopySlice.On(row)
		default:
			s.Cat, s.Place = kernel, profile.KernelSlice.On(row)
		}
	}
}

// isWait reports whether a task of a device does nothing: streams of Ascend wait for each
// other in tasks.
func isWait(name string) bool {
	return slices.Contains([]string{"EVENT_WAIT", "EVENT_RECORD", "EVENT_RESET", "NOTIFY_WAIT", "Notify_Wait", "Notify_Record", "WAIT_VALUE"}, name)
}
