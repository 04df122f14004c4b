package nsystest

import (
	"fmt"
	"slices"
	"strings"
)

// tables are the tables that are read, and some that are not, each with its columns in the order of the file. A
// column is an INTEGER unless $ (TEXT) or ~ (REAL) follows its name; then ! is NOT NULL, * the primary key, and
// + part of one. They are as nsys 2023.4 writes them; later additions are as in nsys 2024.6.
const tables = `
StringIds id* value$!
META_DATA_EXPORT name$! value$
META_DATA_CAPTURE name$! value$
TARGET_INFO_SYSTEM_ENV globalVid devStateName$! name$! nameEnum! value$!
TARGET_INFO_SESSION_START_TIME utcEpochNs utcTime$ localTime$
ANALYSIS_DETAILS globalVid! duration! startTime! stopTime!
PROCESSES globalPid pid name$
ThreadNames nameId! priority globalTid
TARGET_INFO_GPU vmId! id! name$ busLocation$ isDiscrete l2CacheSize totalMemory memoryBandwidth clockRate smCount pwGpuId uuid$
TARGET_INFO_CUDA_DEVICE gpuId cudaId! pid! uuid$ numMultiprocessors
TARGET_INFO_CUDA_STREAM streamId! hwId! vmId! processId! contextId! priority! flag!
TARGET_INFO_CUDA_CONTEXT_INFO nullStreamId! hwId! vmId! processId! deviceId! contextId! parentContextId isGreenContext
MPI_RANKS globalTid! rank!
DIAGNOSTIC_EVENT timestamp! timestampType! source! severity! text$! globalPid
CUPTI_ACTIVITY_KIND_KERNEL start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid demangledName! shortName! mangledName launchType cacheConfig registersPerThread! gridX! gridY! gridZ! blockX! blockY! blockZ! staticSharedMemory! dynamicSharedMemory! localMemoryPerThread! localMemoryTotal! gridId! sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig
CUPTI_ACTIVITY_KIND_RUNTIME start! end! eventClass! globalTid correlationId nameId! returnValue! callchainId
CUPTI_ACTIVITY_KIND_DRIVER start! end! eventClass! globalTid correlationId nameId! returnValue! callchainId
CUPTI_ACTIVITY_KIND_MEMCPY start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid bytes! copyKind! deprecatedSrcId srcKind dstKind srcDeviceId srcContextId dstDeviceId dstContextId migrationCause graphNodeId virtualAddress
CUPTI_ACTIVITY_KIND_MEMSET start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid value! bytes! graphNodeId memKind
CUPTI_ACTIVITY_KIND_SYNCHRONIZATION start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid syncType! eventId!
CUPTI_ACTIVITY_KIND_GRAPH_TRACE start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid graphId! graphExecId!
OSRT_API start! end! eventClass! globalTid nameId! returnValue! nestingLevel callchainId!
PROFILER_OVERHEAD start! end! globalTid nameId! returnValue!
CUDA_GRAPH_NODE_EVENTS start! end! eventClass! globalTid nameId! graphNodeId! originalGraphNodeId
CUDA_GPU_MEMORY_USAGE_EVENTS start! globalPid! deviceId! contextId! address! pc! bytes! memKind! memoryOperationType! name$ correlationId localMemoryPoolAddress localMemoryPoolReleaseThreshold localMemoryPoolSize localMemoryPoolUtilizedSize importedMemoryPoolAddress importedMemoryPoolProcessId
TARGET_INFO_GPU_METRICS typeId! sourceId! typeName$! metricId! metricName$!
GPU_METRICS timestamp typeId! metricId! value!
NET_NIC_METRIC start! end! globalId! metricsListId! metricsIdx! value!
NET_IB_SWITCH_METRIC start! end! globalId! metricsListId! metricsIdx! value!
TARGET_INFO_NETWORK_METRICS metricsListId! metricsIdx! name$! description$! unit$!
NIC_ID_MAP nicId! globalId!
TARGET_INFO_NIC_INFO GUID! stateName$! nicId! name$! deviceId! vendorId! linkLayer!
SCHED_EVENTS start! cpu! isSchedIn! globalTid
COMPOSITE_EVENTS id* start! cpu threadState globalTid cpuCycles!
SAMPLING_CALLCHAINS id!+ symbol! module! kernelMode thumbCode unresolved specialEntry originalIP unwindMethod stackDepth!+
OSRT_CALLCHAINS id!+ symbol! module! kernelMode thumbCode unresolved specialEntry originalIP unwindMethod stackDepth!+
CUDA_CALLCHAINS id!+ symbol! module! unresolved originalIP stackDepth!+
NVTX_EVENTS start! end eventType! rangeId category color text$ globalTid endGlobalTid textId domainId uint64Value int64Value doubleValue~ uint32Value int32Value floatValue~ jsonTextId jsonText$ binaryData$
NVTX_PAYLOAD_SCHEMA_ENTRIES domainId! schemaId! idx! flags type name$ description$ arrayOrUnionDetail offset
`

// Tables returns the statements that create the named tables, or all tables if there are no names.
func Tables(names ...string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSpace(tables)) {
		words := strings.Fields(line)
		if len(names) > 0 && !slices.Contains(names, words[0]) {
			continue
		}
		columns := make([]string, 0, len(words)-1)
		var key []string
		for _, w := range words[1:] {
			columns = append(columns, define(w))
			if name, is := strings.CutSuffix(w, "!+"); is {
				key = append(key, name)
			}
		}
		if key != nil {
			columns = append(columns, "PRIMARY KEY ("+strings.Join(key, ", ")+")")
		}
		fmt.Fprintf(&b, "CREATE TABLE %s (%s);\n", words[0], strings.Join(columns, ", "))
	}
	return b.String()
}

// define returns the definition of a column.
func define(word string) string {
	name := strings.TrimRight(word, "$~!*+")
	kind, marks := " INTEGER", word[len(name):]
	switch {
	case strings.Contains(marks, "$"):
		kind = " TEXT"
	case strings.Contains(marks, "~"):
		kind = " REAL"
	}
	switch {
	case strings.Contains(marks, "*"):
		kind += " NOT NULL PRIMARY KEY"
	case strings.Contains(marks, "!"):
		kind += " NOT NULL"
	}
	return name + kind
}

// EveryTable returns an export with all tables that are read, and some that are not. Event tables have n rows
// each, on several pages.
func EveryTable(n int) string {
	var b strings.Builder
	b.WriteString(Tables() + `
		INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2024.5.1'), ('EXPORT_SCHEMA_VERSION', '3.13.2');
		INSERT INTO META_DATA_CAPTURE VALUES ('CUDA_GRAPH_TRACE_OPTIONS:MODE', 'Node');
		INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, '', 'Hostname', 619, 'node7');
		INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, '', '');
		INSERT INTO ANALYSIS_DETAILS VALUES (0, 9000000000, 0, 9000000000);
		INSERT INTO TARGET_INFO_GPU (vmId, id, name, busLocation, uuid) VALUES (0, 6, 'H100', '0000:18:00.0', 'u6');
		INSERT INTO TARGET_INFO_CUDA_DEVICE (gpuId, cudaId, pid, uuid) VALUES (6, 0, 40, 'u6');
		INSERT INTO TARGET_INFO_CUDA_STREAM VALUES (7, 0, 1, 40, 1, 0, 0), (13, 0, 1, 40, 1, -5, 0);
		INSERT INTO TARGET_INFO_CUDA_CONTEXT_INFO VALUES (7, 0, 1, 40, 0, 1, NULL, 0);
		INSERT INTO TARGET_INFO_GPU_METRICS VALUES (17, 2, 'GPU 0', 1, 'SMs Active'), (17, 2, 'GPU 0', 2, 'DRAM');
		INSERT INTO TARGET_INFO_NETWORK_METRICS VALUES (1, 0, 'Bytes sent', 'of the card', 'bytes'), (1, 1, 'Packets', 'of the card', '');
		INSERT INTO NIC_ID_MAP VALUES (3, 17);
		INSERT INTO TARGET_INFO_NIC_INFO VALUES (9000, 'Active', 3, 'mlx5_0', 1, 1, 1);
		INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, 2, 0, NULL, 5, 'Rank', NULL, NULL, 0);
		INSERT INTO StringIds VALUES (0, '[Unknown]'), (1, 'the name of a thread'), (2, replace(hex(zeroblob(6000)), '0', 'long '));
	`)
	fill := func(table, values string, rows int) {
		fmt.Fprintf(&b, "WITH RECURSIVE i(x) AS (SELECT 0 UNION ALL SELECT x+1 FROM i WHERE x<%d-1) INSERT INTO %s SELECT %s FROM i;\n", rows, table, values)
	}
	const start, pid, thread = "2000000000+x*9137", "281474976710656+(40+x%4)*16777216", "281474976710656+(40+x%4)*16777216+40+x%4"
	const times = start + ", " + start + "+5000+x%4096"
	const place = times + ", x%8, 1, NULL, 7+x%3, x, " + pid
	fill("StringIds", "x+3, 'void some_namespace::kernel_' || x || '<float, int>(float*, const float*, int)'", n)
	fill("PROCESSES", "281474976710656+(40+x)*16777216, 40+x, 'sglang::scheduler_TP' || x", 4)
	fill("ThreadNames", "1, 20, 281474976710656+(40+x)*16777216+40+x", 4)
	fill("MPI_RANKS", "281474976710656+(40+x)*16777216, x", 4)
	fill("DIAGNOSTIC_EVENT", start+", 1, 1, 1+x%3, 'events lost ' || x, NULL", n/2)
	fill("CUPTI_ACTIVITY_KIND_KERNEL", times+", x%8, 1, NULL, 7, x, "+pid+", 3+x%"+fmt.Sprint(n)+", 3, NULL, 1, 0, 64, 132, x%7, 1, 256, 1, 1, 1024, 49152, 0, 0, x, 49152, NULL, 0", n)
	fill("CUPTI_ACTIVITY_KIND_RUNTIME", times+", x%2, "+thread+", x, 3+x%20, 0, NULL", n)
	fill("CUPTI_ACTIVITY_KIND_DRIVER", times+", 1, "+thread+", x, 3+x%20, 0, NULL", n)
	fill("OSRT_API", times+", 27, "+thread+", 3+x%20, 0, x%2, 0", n)
	fill("PROFILER_OVERHEAD", times+", "+thread+", 3, 0", n)
	fill("CUPTI_ACTIVITY_KIND_MEMCPY", place+", x*64, 1+x%2, NULL, 0, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL", n)
	fill("CUPTI_ACTIVITY_KIND_MEMSET", place+", 0, x*64, NULL, NULL", n)
	fill("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", place+", 1+x%4, x", n)
	fill("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", place+", x%5, x%7", n)
	fill("CUDA_GRAPH_NODE_EVENTS", times+", 77, "+thread+", 3+x%20, 100+x, NULL", n)
	fill("CUDA_GPU_MEMORY_USAGE_EVENTS", start+", "+pid+", 0, 1, x*4096, 0, x*64, 2, x%2, NULL, x, NULL, NULL, NULL, NULL, NULL, NULL", n)
	fill("GPU_METRICS", start+", 17, 1+x%2, x%100", n)
	fill("NET_NIC_METRIC", times+", 17, 1, x%2, x*1500", n)
	fill("NET_IB_SWITCH_METRIC", times+", 18, 1, x%2, x*1500", n)
	fill("SCHED_EVENTS", start+", x%16, x%2, "+thread, n)
	fill("COMPOSITE_EVENTS", "x+1, "+start+", x%16, 1, "+thread+", 1", n)
	fill("SAMPLING_CALLCHAINS", "x/3+1, 3+x%20, 1, 0, 0, x%5=0, NULL, x, 7, x%3", n)
	fill("OSRT_CALLCHAINS", "x/3+1, 3+x%20, 1, 0, 0, x%5=0, NULL, x, 7, x%3", n)
	fill("CUDA_CALLCHAINS", "x/3+1, 3+x%20, 1, x%5=0, x, x%3", n)
	fill("NVTX_EVENTS", times+", 59, NULL, NULL, NULL, CASE WHEN x%50=0 THEN replace(hex(zeroblob(3000)), '0', 'text ') ELSE 'step ' || x END, "+
		thread+", NULL, CASE WHEN x%50=1 THEN 2 END, 0, NULL, x, NULL, NULL, NULL, NULL, NULL, NULL, NULL", n)
	return b.String()
}
