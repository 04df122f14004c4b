package testexport

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// WriteCSV writes one rank of a run as rocprofv3 does with --output-format csv: kernels to path, which ends in
// kernel_trace.csv, and the other tables next to it.
func (r *ROCm) WriteCSV(path string, rank int) error {
	p := r.Ranks[rank]
	const host = 1 // agents are nodes: first CPUs, then GPUs
	agent := fmt.Sprintf("Agent %d", host+1+rank)
	tables := map[string]*strings.Builder{}
	row := func(table, format string, args ...any) {
		if tables[table] == nil {
			tables[table] = &strings.Builder{}
		}
		fmt.Fprintf(tables[table], format+"\n", args...)
	}
	row("agent_info", `"Node_Id","Logical_Node_Id","Agent_Type","Name","Vendor_Name","Product_Name","Model_Name"`)
	for n := range host + 1 {
		row("agent_info", `%d,%[1]d,"CPU","EPYC","CPU","EPYC",""`, n)
	}
	for n := range r.Ranks {
		row("agent_info", `%d,%[1]d,"GPU","gfx950","AMD","AMD Instinct MI350X","ip discovery"`, host+1+n)
	}
	row("hip_api_trace", `"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"`)
	for i, c := range p.Calls {
		row("hip_api_trace", `"HIP_RUNTIME_API_EXT","%s",%d,%[2]d,%d,%d,%d`, c.Name, p.PID, i+1, c.Start, c.End)
	}
	row("marker_api_trace", `"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"`)
	for i, x := range p.Ranges {
		row("marker_api_trace", `"MARKER_CORE_RANGE_API","%s",%d,%[2]d,%d,%d,%d`, x.Text, p.PID, len(p.Calls)+i+1, x.Start, x.End)
	}
	row("kernel_trace", `"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp","LDS_Block_Size",`+
		`"Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"`)
	row("counter_collection", `"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id","Grid_Size","Kernel_Id","Kernel_Name","Workgroup_Size","LDS_Block_Size","Scratch_Size",`+
		`"VGPR_Count","Accum_VGPR_Count","SGPR_Count","Counter_Name","Counter_Value","Start_Timestamp","End_Timestamp"`)
	for i, k := range p.Kernels {
		row("kernel_trace", `"KERNEL_DISPATCH","%s",1,%d,%d,%d,9,"%s",%d,%d,%d,0,0,64,0,128,256,1,1,%d,1,1`, agent, k.Stream, p.PID, i+1, k.Name, k.Call+1, k.Start, k.End, 256*k.Blocks)
		row("counter_collection", `%d,%d,"%s",1,%d,%[4]d,%d,9,"%s",256,0,0,64,0,128,"SQ_WAVES",%f,%d,%d`, k.Call+1, i+1, agent, p.PID, 256*k.Blocks, k.Name, k.Waves, k.Start, k.End)
	}
	row("memory_copy_trace", `"Kind","Direction","Stream_Id","Source_Agent_Id","Destination_Agent_Id","Correlation_Id","Start_Timestamp","End_Timestamp"`)
	for _, c := range p.Copies {
		direction, from, to := "MEMORY_COPY_HOST_TO_DEVICE", "Agent 0", agent
		if c.Back {
			direction, from, to = "MEMORY_COPY_DEVICE_TO_HOST", to, from
		}
		row("memory_copy_trace", `"MEMORY_COPY","%s",%d,"%s","%s",%d,%d,%d`, direction, c.Stream, from, to, c.Call+1, c.Start, c.End)
	}
	var errs []error
	for table, text := range tables {
		errs = append(errs, os.WriteFile(strings.TrimSuffix(path, "kernel_trace.csv")+table+".csv", []byte(text.String()), 0o644))
	}
	return errors.Join(errs...)
}
