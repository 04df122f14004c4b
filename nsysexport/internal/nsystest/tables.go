package nsystest

import (
	"fmt"
	"slices"
	"strings"
)

// tables are those that are read, and some that are not, each with its columns in the
// order of the file. A column is an INTEGER unless $ (TEXT) or ~ (REAL) follows its name;
// then ! is NOT NULL, * the primary key, and + part of one. They are as nsys 2023.4 writes them; what
// came later is as nsys 2024.6 does.
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

// Tables returns the statements that create tables; none is all.
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
