package page

import "github.com/sgtrace/sgtrace/analyze/finders"

// Dumps makes a section for each kind of what processes write of themselves when something went wrong, or
// when somebody asks: what hangs, what took the memory of devices, and where tokens went.
func Dumps(m *finders.Measured, src Source) (list []Section) {
	if m.Hang != nil {
		s := Section{ID: "hangs", Title: "Hangs"}
		s.addTables(src, "--hang", "Hangs", m.Hang.Report().Tables...)
		list = append(list, s)
	}
	if m.Memory != nil {
		s := Section{ID: "memory", Title: "Memory"}
		s.addTables(src, "--memory", "Memory", m.Memory.Report().Tables...)
		list = append(list, s)
	}
	if m.Routing != nil && len(m.Routing.Sources) > 0 {
		s := Section{ID: "experts", Title: "Experts"}
		s.addTables(src, "--experts", "Experts", m.Routing.Report().Tables...)
		list = append(list, s)
	}
	return list
}
