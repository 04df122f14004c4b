package rocm

import (
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/sgtrace/sgtrace/trace"
)

// stream returns the number of a stream: that of the file, 0 for the default one.
func (r *rocpdReader) stream(scope int32, id int64, none bool, queue int64) int64 {
	if none {
		return queue // files without streams have queues
	}
	if n, ok := r.streams.get(scope, id); ok {
		return n
	}
	return id
}

// dispatches reads the kernels.
func (r *rocpdReader) dispatches() {
	const pid, agent, kernel, queue, stream, start, end, group, grid, shared, event, node = 1, 2, 3, 4, 5, 6, 7, 8, 11, 14, 15, 16
	r.scan("kernel_dispatch", []string{"pid", "agent_id", "kernel_id", "queue_id", "stream_id", "start", "end", "workgroup_size_x", "workgroup_size_y", "workgroup_size_z",
		"grid_size_x", "grid_size_y", "grid_size_z", "group_segment_size", "event_id", "graph_node_id"}, func(scope int32, s *sqlite.Stmt) {
		r.rows++
		on, _ := r.agents.get(scope, s.ColumnInt64(agent))
		what, ok := r.symbols.get(scope, s.ColumnInt64(kernel))
		e, _ := r.events.get(scope, s.ColumnInt64(event))
		k := dispatch{Name: r.name(what.name, ok), Registers: what.registers, Shared: s.ColumnInt64(shared), Node: s.ColumnInt64(node),
			Counters: r.counted[[2]int64{int64(scope), s.ColumnInt64(event)}],
			at: at{Start: trace.Time(s.ColumnInt64(start)), End: trace.Time(s.ColumnInt64(end)), Device: int64(on.number),
				Stream: r.stream(scope, s.ColumnInt64(stream), s.ColumnIsNull(stream), s.ColumnInt64(queue)), Correlation: e.stack}}
		for i := range k.Group {
			k.Group[i], k.Grid[i] = s.ColumnInt64(group+i), s.ColumnInt64(grid+i)
		}
		r.processOf(scope, s.ColumnInt64(pid)).kernel(&k)
	})
}

// copies reads copies between memories.
func (r *rocpdReader) copies() {
	const pid, start, end, name, to, from, size, queue, stream, event = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
	r.scan("memory_copy", []string{"pid", "start", "end", "name_id", "dst_agent_id", "src_agent_id", "size", "queue_id", "stream_id", "event_id"}, func(scope int32, s *sqlite.Stmt) {
		r.rows++
		on, _ := r.agents.get(scope, s.ColumnInt64(to))
		if other, ok := r.agents.get(scope, s.ColumnInt64(from)); ok && !on.gpu {
			on = other // the device of a copy from it to the host
		}
		e, _ := r.events.get(scope, s.ColumnInt64(event))
		at := at{Start: trace.Time(s.ColumnInt64(start)), End: trace.Time(s.ColumnInt64(end)), Device: int64(on.number),
			Stream: r.stream(scope, s.ColumnInt64(stream), s.ColumnIsNull(stream), s.ColumnInt64(queue)), Correlation: e.stack}
		what := r.name(r.strings.get(scope, s.ColumnInt64(name)))
		r.processOf(scope, s.ColumnInt64(pid)).Copy(&at, r.opt.Syms.Name(what), s.ColumnInt64(size))
	})
}

// allocations reads what was allocated on devices, as counters.
func (r *rocpdReader) allocations() {
	r.scan("memory_allocate", []string{"pid", "agent_id", "type", "level", "end", "address", "size"}, func(scope int32, s *sqlite.Stmt) {
		r.rows++
		p, at, address := r.processOf(scope, s.ColumnInt64(1)), trace.Time(s.ColumnInt64(5)), s.ColumnInt64(6)
		on, _ := r.agents.get(scope, s.ColumnInt64(2))
		switch allocates := strings.EqualFold(s.ColumnText(3), "ALLOC"); {
		case strings.EqualFold(s.ColumnText(4), "SCRATCH") || allocates && !on.gpu:
		case allocates:
			p.allocate(on.number, address, s.ColumnInt64(7), at)
		default:
			p.free(address, at)
		}
	})
}
