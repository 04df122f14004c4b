package testexport

import (
	"encoding/json"
	"os"
)

// WriteJSON writes one rank of a run as rocprofv3 does with --output-format json.
func (r *ROCm) WriteJSON(path string, rank int) error {
	type m = map[string]any
	type list = []any
	p := r.Ranks[rank]
	handle := func(n int) m { return m{"handle": n} }
	correlation := func(call int) m { return m{"internal": call + 1, "external": 0} }
	const host, gpu, hip, marker, copies = 100, 101, 1, 2, 3
	agents := list{m{"id": handle(host), "type": 1, "name": "EPYC"}}
	for n := range r.Ranks {
		agents = append(agents, m{"id": handle(gpu + n), "type": 2, "logical_node_type_id": n, "name": "gfx950", "product_name": "AMD Instinct MI350X"})
	}
	names, symbols := map[string]int{}, list{}
	calls, operations := list{}, map[string]int{}
	var operationNames list
	for i, c := range p.Calls {
		if _, ok := operations[c.Name]; !ok {
			operations[c.Name] = len(operations)
			operationNames = append(operationNames, c.Name)
		}
		calls = append(calls, m{"kind": hip, "operation": operations[c.Name], "thread_id": p.PID, "correlation_id": correlation(i), "start_timestamp": c.Start, "end_timestamp": c.End})
	}
	dispatches, counted := list{}, list{}
	for i, k := range p.Kernels {
		if names[k.Name] == 0 {
			names[k.Name] = len(names) + 1
			symbols = append(symbols, m{"kernel_id": names[k.Name], "kernel_name": k.Name + ".kd", "formatted_kernel_name": k.Name, "arch_vgpr_count": 64})
		}
		info := m{"agent_id": handle(gpu + rank), "queue_id": handle(1), "kernel_id": names[k.Name], "dispatch_id": i + 1, "group_segment_size": 0,
			"workgroup_size": m{"x": 256, "y": 1, "z": 1}, "grid_size": m{"x": 256 * k.Blocks, "y": 1, "z": 1}}
		dispatches = append(dispatches, m{"kind": 11, "operation": 2, "thread_id": p.PID, "correlation_id": correlation(k.Call), "start_timestamp": k.Start, "end_timestamp": k.End,
			"dispatch_info": info, "stream_id": handle(k.Stream)})
		counted = append(counted, m{"dispatch_data": m{"dispatch_info": info}, "records": list{m{"counter_id": handle(7), "value": k.Waves}}})
	}
	moved := list{}
	for _, c := range p.Copies {
		operation, to, from := 0, gpu+rank, host
		if c.Back {
			operation, to, from = 1, host, gpu+rank
		}
		moved = append(moved, m{"kind": copies, "operation": operation, "thread_id": p.PID, "correlation_id": correlation(c.Call), "start_timestamp": c.Start, "end_timestamp": c.End,
			"dst_agent_id": handle(to), "src_agent_id": handle(from), "bytes": c.Bytes, "stream_id": handle(c.Stream)})
	}
	texts, ranges := list{}, list{}
	for i, x := range p.Ranges {
		texts = append(texts, m{"key": len(p.Calls) + i + 1, "value": x.Text})
		ranges = append(ranges, m{"kind": marker, "operation": 1, "thread_id": p.PID, "correlation_id": correlation(len(p.Calls) + i), "start_timestamp": x.Start, "end_timestamp": x.End})
	}
	parts := []struct {
		key   string
		value any
	}{
		{"metadata", m{"node": m{"machine_id": "7a08373dca364ee4", "hostname": "mi350-node"}, "pid": p.PID, "init_time": p.Begin, "fini_time": p.End,
			"command": list{"python", "--api-key", r.Canary}, "environment": list{m{"key": "OPENAI_API_KEY", "value": r.Canary}}}},
		{"agents", agents}, {"counters", list{m{"id": handle(7), "name": "SQ_WAVES"}}},
		{"strings", m{"buffer_records": list{m{"kind": "NONE", "operations": list{}}, m{"kind": "HIP_RUNTIME_API_EXT", "operations": operationNames},
			m{"kind": "MARKER_CORE_RANGE_API", "operations": list{"roctxMarkA", "roctxThreadRangeA"}},
			m{"kind": "MEMORY_COPY", "operations": list{"MEMORY_COPY_HOST_TO_DEVICE", "MEMORY_COPY_DEVICE_TO_HOST"}}}, "marker_api": texts}},
		{"kernel_symbols", symbols}, {"callback_records", m{"counter_collection": counted}},
		{"buffer_records", m{"kernel_dispatch": dispatches, "hip_api": calls, "memory_copy": moved, "marker_api": ranges}},
	}
	text := []byte(`{"rocprofiler-sdk-tool":[{`)
	for i, part := range parts { // in the order of rocprofv3, which a map would not keep
		value, err := json.Marshal(part.value)
		if err != nil {
			return err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(append(text, '"'), part.key...), `":`...)
		text = append(text, value...)
	}
	return os.WriteFile(path, append(text, `}]}`...), 0o644)
}
