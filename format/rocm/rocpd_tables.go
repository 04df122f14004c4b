package rocm

import (
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/trace"
)

// rocpdBases are the names of the tables that are read, without the prefix "rocpd_" and the UUID.
var rocpdBases = []string{"metadata", "string", "info_node", "info_process", "info_thread", "info_agent", "info_stream", "info_kernel_symbol", "info_pmc",
	"event", "pmc_event", "kernel_dispatch", "memory_copy", "memory_allocate", "region", "sample", "track"}

// rocpdSuffix matches the suffix of a table name: the UUID of the recording.
var rocpdSuffix = lazyregexp.New(`^_?[0-9a-fA-F]{8}(_?[0-9a-fA-F]{4}){3}_?[0-9a-fA-F]{12}$`)

// rocpdTables are the tables of a database by base name, each with the suffix of its name.
type rocpdTables struct {
	db     *database
	of     map[string][]rocpdTable
	scopes map[string]int32 // by guid
}

type rocpdTable struct{ name, uuid string }

func newRocpdTables(db *database) *rocpdTables {
	t := &rocpdTables{db: db, of: map[string][]rocpdTable{}, scopes: map[string]int32{}}
	for _, name := range db.tables {
		rest, ok := strings.CutPrefix(name, "rocpd_")
		for _, base := range rocpdBases {
			if uuid, found := strings.CutPrefix(rest, base); ok && found && (uuid == "" || rocpdSuffix.MatchString(uuid)) {
				t.of[base] = append(t.of[base], rocpdTable{name, uuid})
			}
		}
	}
	return t
}

// scan passes the rows of all tables of a base. scope identifies the recording of a row, within which its numbers are
// unique. The columns begin at 1; 0 is the number of the row.
func (t *rocpdTables) scan(base string, columns []string, row func(scope int32, s *sqlite.Stmt)) {
	columns = append(columns, "guid")
	guid := len(columns)
	last, scope := "", int32(-1)
	for _, x := range t.of[base] {
		t.db.Scan(x.name, columns, func(s *sqlite.Stmt) {
			text := x.uuid
			if !s.ColumnIsNull(guid) {
				text = s.ColumnText(guid)
			}
			if text != last || scope < 0 {
				last = text
				var known bool
				if scope, known = t.scopes[text]; !known {
					scope = int32(len(t.scopes))
					t.scopes[text] = scope
				}
			}
			row(scope, s)
		})
	}
}

// A lookup finds rows by recording and number, which producers count from 0 or 1 on.
type lookup[T any] struct {
	dense []([]T) // by scope and number
	known []([]bool)
	far   map[[2]int64]T
	// append appends to a list: [memory.Append] if there may be as many rows as events.
	append func([]T, ...T) []T
}

// slack bounds how far a number may be from the end of a list: larger gaps would leave most of the list empty.
const slack = 1 << 12

func (l *lookup[T]) set(scope int32, id int64, v T) {
	for int(scope) >= len(l.dense) {
		l.dense, l.known = append(l.dense, nil), append(l.known, nil)
	}
	list, known := &l.dense[scope], &l.known[scope]
	if id < 0 || id > int64(2*len(*list)+slack) {
		if l.far == nil {
			l.far = map[[2]int64]T{}
		}
		l.far[[2]int64{int64(scope), id}] = v
		return
	}
	for int64(len(*list)) <= id {
		var none T
		*known = memory.Append(*known, false)
		if l.append != nil {
			*list = l.append(*list, none)
		} else {
			*list = append(*list, none)
		}
	}
	(*list)[id], (*known)[id] = v, true
}

func (l *lookup[T]) get(scope int32, id int64) (v T, ok bool) {
	if int(scope) < len(l.dense) && id >= 0 && id < int64(len(l.dense[scope])) && l.known[scope][id] {
		return l.dense[scope][id], true
	}
	v, ok = l.far[[2]int64{int64(scope), id}]
	return v, ok
}

// stream returns the number of a stream in the file, 0 for the default one.
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
		r.to.rows++
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
		r.to.rows++
		on, _ := r.agents.get(scope, s.ColumnInt64(to))
		if other, ok := r.agents.get(scope, s.ColumnInt64(from)); ok && !on.gpu {
			on = other // a copy from a device to the host belongs to the device
		}
		e, _ := r.events.get(scope, s.ColumnInt64(event))
		at := at{Start: trace.Time(s.ColumnInt64(start)), End: trace.Time(s.ColumnInt64(end)), Device: int64(on.number),
			Stream: r.stream(scope, s.ColumnInt64(stream), s.ColumnIsNull(stream), s.ColumnInt64(queue)), Correlation: e.stack}
		what := r.name(r.strings.get(scope, s.ColumnInt64(name)))
		r.processOf(scope, s.ColumnInt64(pid)).Copy(&at, r.opt.Syms.Name(what), s.ColumnInt64(size))
	})
}

// allocations reads allocations on devices, as counters.
func (r *rocpdReader) allocations() {
	r.scan("memory_allocate", []string{"pid", "agent_id", "type", "level", "end", "address", "size"}, func(scope int32, s *sqlite.Stmt) {
		r.to.rows++
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
