package rows

// activeTables returns the tables whose rows show that a process did something that was traced.
// That a thread got a core is not among them: all processes of the machine have such rows.
func activeTables() []*tableSpec {
	specs := []*tableSpec{&kernelTable, &graphTable, &memcpyTable, &memsetTable, &syncTable, &apiTable, &driverTable, &nvtxTable, &osTable}
	for i := range libraryTables {
		if libraryTables[i].class != ClassOverhead {
			specs = append(specs, &libraryTables[i].spec)
		}
	}
	return specs
}

// Active returns how many events each process has, by pid: what it did on GPUs, its calls
// into libraries, and its annotations. It reads one column of whole tables.
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
