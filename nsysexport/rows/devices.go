package rows

import "github.com/sgtrace/sgtrace/trace"

// A contextID is a CUDA context of a process, which is on one device for as long as it lives.
type contextID struct {
	pid     int32
	context uint32
}

// devices knows the devices of contexts, for tables that lack the column of devices. It is nil if none lacks it.
type devices struct {
	of   map[contextID]int32
	only map[int32]int32 // by process: its device, if it has one
}

// several stands for devices that contradict each other.
const several = -2

func (d *devices) add(id contextID, device int32) {
	if device < 0 {
		return
	}
	if old, ok := d.of[id]; ok && old != device {
		device = several
	}
	d.of[id] = device
	if old, ok := d.only[id.pid]; ok && old != device {
		device = several
	}
	d.only[id.pid] = device
}

// find returns the device of a context, else the only one of its process; -1 is unknown. exact means that the context has it.
func (d *devices) find(id contextID) (device int32, exact bool) {
	if device, ok := d.of[id]; ok && device >= 0 {
		return device, true
	}
	if device, ok := d.only[id.pid]; ok && device >= 0 {
		return device, false
	}
	return -1, false
}

// contextTable lists the contexts of processes.
var contextTable = tableSpec{
	names: []string{"TARGET_INFO_CUDA_CONTEXT_INFO", "TARGET_INFO_CUDA_NULL_STREAM"},
	columns: []column{
		{name: "processId", none: -1, need: true}, {name: "contextId", need: true}, {name: "deviceId", none: -1, need: true},
	},
	quiet: true,
}

// places returns a spec that reads only where the operations of a table ran.
func places(spec *tableSpec) *tableSpec {
	return &tableSpec{names: spec.names, columns: operation(), quiet: true}
}

// readDevices finds the devices of contexts if a table of operations lacks the column of devices, and reports that. Waits are not
// among these tables: nsys writes device 0 for all of them.
func (s *Source) readDevices(c *connection) {
	var lack, have []*tableSpec
	for _, spec := range []*tableSpec{&kernelTable, &memcpyTable, &memsetTable, &graphTable} {
		sel, err := s.choose(c, spec)
		switch {
		case err != nil || sel == nil || sel.missing != "" || c.Conn.Rows(sel.table) == 0:
		case sel.has(opDevice):
			have = append(have, places(spec))
		default:
			lack = append(lack, places(spec))
		}
	}
	if len(lack) == 0 {
		return
	}
	d := &devices{map[contextID]int32{}, map[int32]int32{}}
	if sel, err := s.choose(c, &contextTable); err == nil && sel != nil && sel.missing == "" {
		s.scanOn(c, &contextTable, func(cur *cursor) bool {
			d.add(contextID{int32(cur.int(0)), uint32(cur.int(1))}, int32(cur.int(2)))
			return true
		})
	}
	var p Place
	for _, spec := range have {
		s.scanOn(c, spec, func(cur *cursor) bool {
			cur.place(&p)
			d.add(contextID{p.PID, p.Context}, p.Device)
			return true
		})
	}
	s.devices = d
	for _, spec := range lack {
		s.reportDevices(c, spec)
	}
}

// reportDevices says that a table lacks the column of devices, and what follows.
func (s *Source) reportDevices(c *connection, spec *tableSpec) {
	table, rows, unknown := "", 0, 0
	s.scanOn(c, spec, func(cur *cursor) bool {
		table = cur.sel.table
		if _, exact := s.devices.find(contextID{pidOf(cur.int(opPID)), uint32(cur.int(opContext))}); !exact {
			unknown++
		}
		rows++
		return true
	})
	switch {
	case unknown > 0:
		s.Diag(trace.NsysNoDevice, table, 0, unknown, rows)
	case rows > 0:
		s.Diag(trace.NsysContextDevice, table, 0)
	}
}
