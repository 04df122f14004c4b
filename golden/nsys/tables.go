package nsys

import (
	"fmt"
	"strconv"
	"strings"
)

// Schema is a generation of the schema, by the year of the nsys that exports it.
type Schema int

const (
	Schema2021 Schema = 2021 // does not name itself
	Schema2022 Schema = 2022 // 3.0.0, the first one with tables of labels
	Schema2024 Schema = 2024 // 3.16.1, with green contexts
	Schema2026 Schema = 2026 // 3.25.0, with clusters and ids of graphs
)

// Schemas are all generations, the oldest first.
var Schemas = []Schema{Schema2021, Schema2022, Schema2024, Schema2026}

// Version returns the version of the schema in exports, and that of nsys; both are empty if exports do not contain them.
func (s Schema) Version() (schema, product string) {
	switch s {
	case Schema2022:
		return "3.0.0", "2022.4.1.21"
	case Schema2024:
		return "3.16.1", "2024.6.2.225"
	case Schema2026:
		return "3.25.0", "2026.2.1.210"
	}
	return "", ""
}

// Has reports whether exports of the generation can have a table.
func (s Schema) Has(table string) bool { return s.columns(table) != nil }

// Known reports whether any generation has a table.
func Known(table string) bool { return tables[table] != "" }

// A column of a table.
type column struct {
	name    string
	kind    string // INTEGER, TEXT or REAL
	notNull bool
	key     bool // PRIMARY KEY
	part    bool // of a PRIMARY KEY of several columns
}

// columns returns the columns of a table, nil if the generation does not have it. It panics if no generation does.
func (s Schema) columns(table string) []column {
	text, ok := tables[table]
	if !ok {
		panic("nsys: unknown table " + table)
	}
	var list []column
	for i, word := range strings.Fields(text) {
		word, years, bounded := strings.Cut(word, "@")
		has := !bounded || s.within(years)
		switch {
		case word == "" && i == 0:
			if !has {
				return nil
			}
		case has:
			list = append(list, parseColumn(word))
		}
	}
	return list
}

// within reports whether s is in years, which are a first one and, after a dash, a last one.
func (s Schema) within(years string) bool {
	first, last, bounded := strings.Cut(years, "-")
	from, _ := strconv.Atoi(first)
	to, _ := strconv.Atoi(last)
	return int(s) >= from && (!bounded || int(s) <= to)
}

// parseColumn parses one column of the table below.
func parseColumn(word string) column {
	c := column{kind: "INTEGER"}
	for {
		switch last := word[len(word)-1]; last {
		case '!':
			c.notNull = true
		case '*':
			c.notNull, c.key = true, true
		case '+':
			c.part = true
		case '$':
			c.kind = "TEXT"
		case '~':
			c.kind = "REAL"
		default:
			c.name = word
			return c
		}
		word = word[:len(word)-1]
	}
}

// definition returns the statement that creates a table.
func definition(table string, columns []column) string {
	lines := make([]string, len(columns))
	var key []string
	for i, c := range columns {
		lines[i] = fmt.Sprintf("%q %s", c.name, c.kind)
		if c.notNull {
			lines[i] += " NOT NULL"
		}
		if c.key {
			lines[i] += " PRIMARY KEY"
		}
		if c.part {
			key = append(key, c.name)
		}
	}
	if key != nil {
		lines = append(lines, "PRIMARY KEY ("+strings.Join(key, ", ")+")")
	}
	return fmt.Sprintf("CREATE TABLE %q (%s)", table, strings.Join(lines, ", "))
}

// Columns that several tables share.
const (
	operationColumns = "start! end! " + placeColumns
	placeColumns     = "deviceId! contextId! greenContextId@2024 streamId! correlationId globalPid "
	labelColumns     = "@2022 id* name$ label$"
	pairColumns      = "name$! value$"
	chainColumns     = "id!+ symbol! module! kernelMode thumbCode unresolved specialEntry originalIP unwindMethod stackDepth!+"
)

// tables are the columns of all tables, in their order. After a name, ! means NOT NULL, * the primary key, + a part of it,
// $ TEXT and ~ REAL instead of INTEGER, and @ precedes the generations that have the column. A separate @ at the beginning
// does the same for the table.
var tables = map[string]string{
	"StringIds":         "id* value$!",
	"EXPORT_META_DATA":  "@2022-2022 " + pairColumns,
	"META_DATA_EXPORT":  "@2024 " + pairColumns,
	"META_DATA_CAPTURE": "@2024 " + pairColumns,
	"ANALYSIS_FILE":     "@2024 id* filename$ contentId globalPid!",
	"ProcessStreams":    "globalPid! filenameId! contentId!",
	"DIAGNOSTIC_EVENT":  "@2024 timestamp! timestampType! source! severity! text$! globalPid",

	"TARGET_INFO_SYSTEM_ENV":         "@2022 globalVid!@2022-2022 globalVid@2024 devStateName$! name$! nameEnum! value$!",
	"TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime$ localTime$ systemClockNs@2026",
	"ANALYSIS_DETAILS":               "@2022 globalVid! duration! startTime! stopTime!",
	"PROCESSES":                      "@2022 globalPid pid name$",
	"ThreadNames":                    "nameId! priority globalTid",
	"TARGET_INFO_GPU": `vmId! id! name$ busLocation$ isDiscrete l2CacheSize totalMemory memoryBandwidth clockRate
		smCount pwGpuId uuid$ luid chipName$ cuDevice ctxswDevPath$ ctrlDevPath$ revision nodeMask constantMemory
		maxIPC maxRegistersPerBlock maxShmemPerBlock maxShmemPerBlockOptin maxShmemPerSm maxRegistersPerSm
		threadsPerWarp asyncEngines maxWarpsPerSm maxBlocksPerSm maxThreadsPerBlock maxBlockDimX maxBlockDimY
		maxBlockDimZ maxGridDimX maxGridDimY maxGridDimZ computeMajor computeMinor smMajor smMinor`,
	"TARGET_INFO_CUDA_DEVICE":       "@2026 gpuId cudaId! pid! uuid$ numMultiprocessors",
	"TARGET_INFO_CUDA_NULL_STREAM":  "@2021-2022 streamId! hwId! vmId! processId! deviceId! contextId!",
	"TARGET_INFO_CUDA_CONTEXT_INFO": "@2024 nullStreamId! hwId! vmId! processId! deviceId! contextId! parentContextId isGreenContext numMultiprocessors@2026",
	"TARGET_INFO_CUDA_STREAM":       "streamId! hwId! vmId! processId! contextId! priority! flag!",
	"TARGET_INFO_GPU_METRICS":       "typeId! sourceId! typeName$! metricId! metricName$!",

	"CUPTI_ACTIVITY_KIND_KERNEL": operationColumns + `demangledName! shortName! mangledName@2022 launchType cacheConfig
		registersPerThread! gridX! gridY! gridZ! blockX! blockY! blockZ! staticSharedMemory! dynamicSharedMemory!
		localMemoryPerThread! localMemoryTotal! gridId! sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig
		qmdBulkReleaseDone@2026 qmdPreexitDone@2026 qmdLastCtaDone@2026 graphId@2026 clusterX@2026 clusterY@2026
		clusterZ@2026 clusterSchedulingPolicy@2026 maxPotentialClusterSize@2026 maxActiveClusters@2026
		sharedMemoryRequestedPercentage@2026 tensorSizeMinusOneElements$!@2026`,
	"CUPTI_ACTIVITY_KIND_RUNTIME": "start! end! eventClass! globalTid correlationId nameId! returnValue! callchainId",
	"CUPTI_ACTIVITY_KIND_MEMCPY": operationColumns + `bytes! copyKind! deprecatedSrcId srcKind dstKind srcDeviceId
		srcContextId dstDeviceId dstContextId migrationCause graphNodeId virtualAddress@2022 copyCount@2026`,
	"CUPTI_ACTIVITY_KIND_MEMSET":          operationColumns + "value! bytes! graphNodeId memKind",
	"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": operationColumns + "deprecatedSyncType@2026 syncType! eventId! eventSyncId@2026",
	"CUPTI_ACTIVITY_KIND_GRAPH_TRACE":     "@2022 " + operationColumns + "graphId! graphExecId!",
	"CUDA_GRAPH_NODE_EVENTS":              "@2024 start! end! eventClass! globalTid nameId! graphNodeId! originalGraphNodeId",
	"CUDA_GPU_MEMORY_USAGE_EVENTS": `start! globalPid! deviceId! contextId! address! pc! bytes! memKind!
		memoryOperationType! name$ correlationId streamId localMemoryPoolAddress localMemoryPoolReleaseThreshold
		localMemoryPoolSize localMemoryPoolUtilizedSize importedMemoryPoolAddress importedMemoryPoolProcessId`,

	"NVTX_EVENTS": `start! end eventType! rangeId category color text$ globalTid endGlobalTid textId domainId
		uint64Value int64Value doubleValue~ uint32Value int32Value floatValue~ jsonTextId jsonText$ binaryData$@2026`,
	"NVTX_PAYLOAD_SCHEMAS":        "@2024 domainId schemaId name$ type flags numEntries payloadSize alignTo",
	"NVTX_PAYLOAD_SCHEMA_ENTRIES": "@2024 domainId! schemaId! idx! flags type name$ description$ arrayOrUnionDetail offset",

	"OSRT_API": `start! end! eventClass! globalTid correlationId@2021-2021 nameId! returnValue! nestingLevel
		callchainId! argumentsId!@2026`,
	"CUDA_CALLCHAINS":     chainColumns,
	"SAMPLING_CALLCHAINS": chainColumns,
	"COMPOSITE_EVENTS":    "id* start! cpu threadState globalTid cpuCycles!",
	"SCHED_EVENTS":        "start! cpu! isSchedIn! globalTid threadState@2024 threadBlock@2024",
	"GPU_METRICS":         "rawTimestamp!@2026 timestamp! typeId! metricId! value!",

	"ENUM_CUDA_MEMCPY_OPER":        labelColumns,
	"ENUM_CUDA_MEM_KIND":           labelColumns,
	"ENUM_CUDA_DEV_MEM_EVENT_OPER": labelColumns,
	"ENUM_CUPTI_SYNC_TYPE":         labelColumns,
}
