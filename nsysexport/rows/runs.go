package rows

import "github.com/sgtrace/sgtrace/trace"

// A Run is a time during which a thread had a core.
type Run struct {
	Start, End trace.Time
	PID, TID   int32
	CPU        int32 // -1 is unknown
}

// Runs yields the runs of threads, from getting a core to losing it. A thread that was running when the
// recording began or ended counts as running up to that time.
func (s *Source) Runs(yield func(*Run) bool) {
	type thread struct{ pid, tid int32 }
	open := map[thread]*Run{} // nil if the thread is not running
	var order []thread
	begin, end := s.Meta.SessionStart, trace.Time(0)
	more := true
	pass := func(r *Run, to trace.Time) {
		r.End = to
		more = yield(r)
	}
	s.Scheds(func(x *Sched) bool {
		t := thread{x.PID, x.TID}
		run, known := open[t]
		if !known {
			order = append(order, t)
			open[t] = nil
		}
		end = max(end, x.Time)
		switch {
		case x.In && run == nil:
			open[t] = &Run{Start: x.Time, PID: x.PID, TID: x.TID, CPU: x.CPU}
		case !x.In && run != nil:
			pass(run, x.Time)
			open[t] = nil
		case !x.In && !known:
			pass(&Run{Start: min(begin, x.Time), PID: x.PID, TID: x.TID, CPU: x.CPU}, x.Time)
		}
		return more
	})
	if s.Meta.Duration >= 0 {
		end = max(end, begin+trace.Time(s.Meta.Duration))
	}
	for _, t := range order {
		if run := open[t]; run != nil && more {
			pass(run, end)
		}
	}
}

// activeTables returns the tables that show traced activity of a process. Getting a core does not count: all
// processes of the machine have such rows.
func activeTables() []*tableSpec {
	specs := []*tableSpec{&kernelTable, &graphTable, &memcpyTable, &memsetTable, &syncTable, &apiTable, &driverTable, &nvtxTable, &osTable}
	for i := range libraryTables {
		if libraryTables[i].class != ClassOverhead {
			specs = append(specs, &libraryTables[i].spec)
		}
	}
	return specs
}

// Active returns the number of events of each process, by pid: GPU work, calls into libraries, and annotations.
// It reads one column of whole tables.
func (s *Source) Active() map[int32]int64 {
	events := map[int32]int64{}
	for _, table := range activeTables() {
		spec := tableSpec{names: table.names}
		for _, c := range table.columns {
			if c.name == "globalPid" || c.name == "globalTid" {
				spec.columns = []column{c}
			}
		}
		s.scan(&spec, func(c *cursor) bool {
			if pid := pidOf(c.int(0)); pid >= 0 {
				events[pid]++
			}
			return true
		})
	}
	return events
}
