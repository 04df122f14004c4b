package chrometrace

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// The devices of some producers are processes whose events have no category: only the names of rows show what
// ran where. deviceRows are these names: the prefix of the process name, and that of its rows with work. Other
// rows repeat the same work by module, step, or collective.
var deviceRows = []struct{ process, row string }{
	{hardware, ""},               // torch_npu, MindSpore: a row for each stream
	{"HCCL", groupRow},           // the same: a row for each communicator, on which a collective is one event
	{"Communication", groupRow},  // what later versions call that process
	{"/device:TPU:", "XLA Ops"},  // JAX and TensorFlow
	{"/device:GPU:", "Stream #"}, // the same
}

const (
	hardware = "Ascend Hardware"
	groupRow = "Group "
)

// onDevice reports whether the events on a row without a category ran on a device.
func onDevice(r *profile.Row) bool {
	return slices.ContainsFunc(deviceRows, func(d struct{ process, row string }) bool {
		return strings.HasPrefix(r.Process, d.process) && strings.HasPrefix(r.Name, d.row)
	})
}

// findDevices gives events of devices the categories that Kineto uses for them.
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
	c.planes = placeGroups(f.Rows)
	waits := map[trace.Sym]bool{}
	for i := range f.Events {
		s := &f.Events[i]
		row := s.Place.Row()
		if s.Cat != none || !device[row] {
			continue
		}
		wait, known := waits[s.Name]
		if !known {
			name := c.opt.Syms.Name(s.Name)
			wait = isWait(name) || c.planes != nil && name == "SDMA"
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

// placeGroups turns rows of collectives into streams of the devices that ran them. It returns the row of its group for each row with
// tasks of collectives, nil if there are no groups. If there are any, copies between devices on other streams are parts of collectives, too.
func placeGroups(rows []profile.Row) (planes map[int32]int32) {
	isGroup := func(r *profile.Row) bool { return strings.HasPrefix(r.Name, groupRow) && onDevice(r) }
	groups := map[int32]profile.Row{} // as recorded
	for i := range rows {
		if isGroup(&rows[i]) {
			groups[int32(i)] = rows[i]
		}
	}
	if len(groups) == 0 {
		return nil
	}
	planes = map[int32]int32{}
	for i := range rows {
		h, of := &rows[i], int32(-1)
		for k, g := range groups { // a group's tasks are on the rows behind its own
			if g.Process == h.Process && g.Part == h.Part && g.PID == h.PID && g.TID < h.TID && (of < 0 || g.TID > groups[of].TID) {
				of = k
			}
		}
		if _, own := groups[int32(i)]; of >= 0 && !own {
			planes[int32(i)] = of
		}
	}
	for i := range groups {
		r := &rows[i]
		of, last := int64(-1), int64(-1)
		for j := range rows {
			if h := &rows[j]; h.Process == hardware && h.Part == r.Part && (of < 0 || (h.PID^r.PID)%32 == 0) { // the pids of CANN's processes end in the device
				if h.PID != of {
					of, last = h.PID, -1
				}
				last = max(last, h.TID)
			}
		}
		if of >= 0 {
			r.PID, r.TID = of, last+1+r.TID // numbered after its streams, as a group's row may have the number of a stream
		}
	}
	return planes
}

// isWait reports whether a device's task does no work: streams of Ascend wait for each other in tasks, and
// devices for each other within a collective.
func isWait(name string) bool {
	return slices.Contains([]string{"EVENT_WAIT", "EVENT_RECORD", "EVENT_RESET", "NOTIFY_WAIT", "Notify_Wait", "Notify_Record", "WAIT_VALUE",
		"Notify Wait", "Write Value", "PROFILING_ENABLE", "PROFILING_DISABLE"}, name)
}
