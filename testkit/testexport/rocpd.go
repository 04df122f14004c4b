package testexport

import (
	"fmt"
	"strings"
)

// rocpdTables are the tables of schema 3.0.0 with the relevant columns, without the UUID after their names. Each has an id,
// a guid, and extdata.
var rocpdTables = []struct{ name, columns string }{
	{"string", "string TEXT NOT NULL"},
	{"info_node", "hash BIGINT, machine_id TEXT, system_name TEXT, hostname TEXT, release TEXT, version TEXT"},
	{"info_process", "nid INTEGER, ppid INTEGER, pid INTEGER, init BIGINT, fini BIGINT, start BIGINT, end BIGINT, command TEXT, environment JSONB DEFAULT '{}'"},
	{"info_thread", "nid INTEGER, ppid INTEGER, pid INTEGER, tid INTEGER, name TEXT, start BIGINT, end BIGINT"},
	{"info_agent", "nid INTEGER, pid INTEGER, type TEXT, absolute_index INTEGER, logical_index INTEGER, type_index INTEGER, uuid INTEGER, name TEXT, model_name TEXT, vendor_name TEXT, product_name TEXT"},
	{"info_queue", "nid INTEGER, pid INTEGER, name TEXT"},
	{"info_stream", "nid INTEGER, pid INTEGER, name TEXT"},
	{"info_pmc", "nid INTEGER, pid INTEGER, agent_id INTEGER, name TEXT, symbol TEXT, description TEXT, units TEXT, value_type TEXT"},
	{"info_kernel_symbol", "nid INTEGER, pid INTEGER, code_object_id INTEGER, kernel_name TEXT, display_name TEXT, sgpr_count INTEGER, arch_vgpr_count INTEGER"},
	{"track", "nid INTEGER, pid INTEGER, tid INTEGER, name_id INTEGER"},
	{"event", "category_id INTEGER, stack_id INTEGER, parent_stack_id INTEGER, correlation_id INTEGER, call_stack JSONB, line_info JSONB"},
	{"arg", "event_id INTEGER, position INTEGER, type TEXT, name TEXT, value TEXT"},
	{"pmc_event", "event_id INTEGER, pmc_id INTEGER, value REAL"},
	{"region", "nid INTEGER, pid INTEGER, tid INTEGER, start BIGINT, end BIGINT, name_id INTEGER, event_id INTEGER"},
	{"sample", "track_id INTEGER, timestamp BIGINT, event_id INTEGER"},
	{"kernel_dispatch", "nid INTEGER, pid INTEGER, tid INTEGER, agent_id INTEGER, kernel_id INTEGER, dispatch_id INTEGER, queue_id INTEGER, stream_id INTEGER, start BIGINT, end BIGINT, " +
		"private_segment_size INTEGER, group_segment_size INTEGER, workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER, " +
		"grid_size_x INTEGER, grid_size_y INTEGER, grid_size_z INTEGER, region_name_id INTEGER, event_id INTEGER"},
	{"memory_copy", "nid INTEGER, pid INTEGER, tid INTEGER, start BIGINT, end BIGINT, name_id INTEGER, dst_agent_id INTEGER, dst_address INTEGER, src_agent_id INTEGER, src_address INTEGER, " +
		"size INTEGER, queue_id INTEGER, stream_id INTEGER, region_name_id INTEGER, event_id INTEGER"},
	{"memory_allocate", "nid INTEGER, pid INTEGER, tid INTEGER, agent_id INTEGER, type TEXT, level TEXT, start BIGINT, end BIGINT, address INTEGER, size INTEGER, queue_id INTEGER, stream_id INTEGER, event_id INTEGER"},
}

// A rocpd writes one rank into a database.
type rocpd struct {
	*database
	guid, uuid string
	strings    map[string]int
	ids        map[string]int // last id of each table
}

// WriteRocpd writes some ranks of a run into one database, like the database of a single process or the result of 'rocpd
// merge'. Without suffix, tables have the plain names that are otherwise those of views.
func (r *ROCm) WriteRocpd(path string, suffix bool, ranks ...int) error {
	db := create(path)
	for _, n := range ranks {
		w := &rocpd{database: db, guid: fmt.Sprintf("%08x-00d1-70d1-a5cb-b5ab88214544", 0x6409+n), strings: map[string]int{}, ids: map[string]int{}}
		if suffix {
			w.uuid = "_" + strings.ReplaceAll(w.guid, "-", "_")
		}
		w.rank(r, r.Ranks[n])
	}
	return db.close()
}

// insert adds a row, and returns its id. values are alternating columns and values.
func (w *rocpd) insert(table string, values ...any) int {
	w.ids[table]++
	columns, marks, args := "id, guid", "?, ?", []any{w.ids[table], w.guid}
	for i := 0; i < len(values); i += 2 {
		columns, marks, args = columns+", "+values[i].(string), marks+", ?", append(args, values[i+1])
	}
	w.run(fmt.Sprintf(`INSERT INTO "rocpd_%s%s" (%s) VALUES (%s)`, table, w.uuid, columns, marks), args...)
	return w.ids[table]
}

func (w *rocpd) string(text string) int {
	id, ok := w.strings[text]
	if !ok {
		id = w.insert("string", "string", text)
		w.strings[text] = id
	}
	return id
}

func (w *rocpd) event(category string, stack int, extdata string) int {
	return w.insert("event", "category_id", w.string(category), "stack_id", stack, "parent_stack_id", stack, "correlation_id", 0, "extdata", extdata)
}

func (w *rocpd) rank(r *ROCm, p *Rank) {
	w.run(fmt.Sprintf(`CREATE TABLE "rocpd_metadata%s" (id INTEGER PRIMARY KEY AUTOINCREMENT, tag TEXT NOT NULL, value TEXT NOT NULL)`, w.uuid))
	for _, t := range rocpdTables {
		w.run(fmt.Sprintf(`CREATE TABLE "rocpd_%s%s" (id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, guid TEXT NOT NULL, %s, extdata JSONB DEFAULT '{}' NOT NULL)`, t.name, w.uuid, t.columns))
	}
	w.run(fmt.Sprintf(`INSERT INTO "rocpd_metadata%s" (tag, value) VALUES ('schema_version', '3'), ('uuid', ?), ('guid', ?)`, w.uuid), w.uuid, w.guid)
	node := w.insert("info_node", "hash", 1, "machine_id", "7a08373dca364ee4", "hostname", "mi350-node")
	process := w.insert("info_process", "nid", node, "pid", p.PID, "init", p.Begin, "fini", p.End, "command", "python --api-key "+r.Canary,
		"environment", fmt.Sprintf(`{"RANK":"%d","WORLD_SIZE":"%d","OPENAI_API_KEY":%q,"PATH":"/usr/bin:%s"}`, p.Number, len(r.Ranks), r.Canary, r.Canary))
	thread := w.insert("info_thread", "nid", node, "pid", process, "tid", p.PID)
	host := w.insert("info_agent", "nid", node, "pid", process, "type", "CPU", "type_index", 0, "name", "EPYC")
	var gpu int
	for n := range r.Ranks {
		id := w.insert("info_agent", "nid", node, "pid", process, "type", "GPU", "type_index", n, "uuid", 30112, "name", "gfx950", "product_name", "AMD Instinct MI350X")
		if n == p.Number {
			gpu = id
		}
	}
	meter := w.insert("info_pmc", "nid", node, "pid", process, "agent_id", gpu, "name", "SQ_WAVES", "symbol", "SQ_WAVES", "units", "")
	symbols := map[string]int{}
	for i, c := range p.Calls {
		event := w.event("HIP_RUNTIME_API_EXT", i+1, "{}")
		w.insert("arg", "event_id", event, "position", 0, "type", "const char*", "name", "key", "value", r.Canary)
		w.insert("region", "nid", node, "pid", process, "tid", thread, "start", c.Start, "end", c.End, "name_id", w.string(c.Name), "event_id", event)
	}
	for i, k := range p.Kernels {
		if symbols[k.Name] == 0 {
			symbols[k.Name] = w.insert("info_kernel_symbol", "nid", node, "pid", process, "code_object_id", 1, "kernel_name", k.Name+".kd", "display_name", k.Name, "arch_vgpr_count", 64)
		}
		event := w.event("KERNEL_DISPATCH", k.Call+1, "{}")
		for range 2 { // the halves of the counter, from two parts of the device
			w.insert("pmc_event", "event_id", event, "pmc_id", meter, "value", k.Waves/2)
		}
		w.insert("kernel_dispatch", "nid", node, "pid", process, "tid", thread, "agent_id", gpu, "kernel_id", symbols[k.Name], "dispatch_id", i+1, "queue_id", 1, "stream_id", k.Stream,
			"start", k.Start, "end", k.End, "group_segment_size", 0, "workgroup_size_x", 256, "workgroup_size_y", 1, "workgroup_size_z", 1,
			"grid_size_x", 256*k.Blocks, "grid_size_y", 1, "grid_size_z", 1, "event_id", event)
	}
	for _, c := range p.Copies {
		name, to, from := "MEMORY_COPY_HOST_TO_DEVICE", gpu, host
		if c.Back {
			name, to, from = "MEMORY_COPY_DEVICE_TO_HOST", host, gpu
		}
		w.insert("memory_copy", "nid", node, "pid", process, "tid", thread, "start", c.Start, "end", c.End, "name_id", w.string(name), "dst_agent_id", to, "src_agent_id", from,
			"size", c.Bytes, "queue_id", 1, "stream_id", c.Stream, "event_id", w.event("MEMORY_COPY", c.Call+1, "{}"))
	}
	for i, x := range p.Ranges {
		event := w.event("MARKER_CORE_RANGE_API", len(p.Calls)+i+1, fmt.Sprintf(`{"message":%q}`, x.Text))
		w.insert("region", "nid", node, "pid", process, "tid", thread, "start", x.Start, "end", x.End, "name_id", w.string("roctxThreadRangeA"), "event_id", event)
	}
}
