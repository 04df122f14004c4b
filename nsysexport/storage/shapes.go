package storage

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sgtrace/sgtrace/internal/tablefile"
)

// shapeText lists the tables that can be recovered, in all known versions, each with its columns in the order
// of the file. A column is an INTEGER unless $ (TEXT) or ~ (REAL) follows its name; then ! is NOT NULL, and *
// the primary key. After = comes the prefix of the column's values or, after =^, a prefix that they do not
// have, which distinguishes tables of the same shape.
const shapeText = `
StringIds id* value$!
META_DATA_EXPORT name$!=EXPORT_ value$
META_DATA_CAPTURE name$!=^EXPORT_ value$
TARGET_INFO_SYSTEM_ENV globalVid devStateName$! name$! nameEnum! value$!
TARGET_INFO_SYSTEM_ENV globalVid! devStateName$! name$! nameEnum! value$!
TARGET_INFO_SESSION_START_TIME utcEpochNs! utcTime$ localTime$
TARGET_INFO_SESSION_START_TIME utcEpochNs! utcTime$ localTime$ systemClockNs
ANALYSIS_DETAILS globalVid! duration! startTime! stopTime!
PROCESSES globalPid pid name$
ThreadNames nameId! priority globalTid
TARGET_INFO_GPU vmId! id! name$ busLocation$ isDiscrete l2CacheSize totalMemory memoryBandwidth clockRate smCount pwGpuId uuid$ luid chipName$ cuDevice ctxswDevPath$ ctrlDevPath$ revision nodeMask constantMemory maxIPC maxRegistersPerBlock maxShmemPerBlock maxShmemPerBlockOptin maxShmemPerSm maxRegistersPerSm threadsPerWarp asyncEngines maxWarpsPerSm maxBlocksPerSm maxThreadsPerBlock maxBlockDimX maxBlockDimY maxBlockDimZ maxGridDimX maxGridDimY maxGridDimZ computeMajor computeMinor smMajor smMinor
TARGET_INFO_GPU vmId! id! name$ busLocation$ uuid$ chipName$ smCount totalMemory
TARGET_INFO_CUDA_DEVICE gpuId cudaId! pid!
TARGET_INFO_CUDA_DEVICE gpuId cudaId! pid! uuid$ numMultiprocessors
TARGET_INFO_CUDA_STREAM streamId! hwId! vmId! processId! contextId! priority! flag!
TARGET_INFO_CUDA_CONTEXT_INFO nullStreamId! hwId! vmId! processId! deviceId! contextId! parentContextId isGreenContext
TARGET_INFO_CUDA_CONTEXT_INFO nullStreamId! hwId! vmId! processId! deviceId! contextId! parentContextId isGreenContext numMultiprocessors
TARGET_INFO_CUDA_CONTEXT_INFO nullStreamId! hwId! vmId! processId! deviceId! contextId! parentContextId isGreenContext numMultiprocessors numTpcs tpcMask$ workqueueResourceId workqueueConcurrencyLimit workqueueSharingScope
DIAGNOSTIC_EVENT timestamp! timestampType! source! severity! text$! globalPid
CUPTI_ACTIVITY_KIND_KERNEL start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid demangledName! shortName! mangledName launchType cacheConfig registersPerThread! gridX! gridY! gridZ! blockX! blockY! blockZ! staticSharedMemory! dynamicSharedMemory! localMemoryPerThread! localMemoryTotal! gridId! sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig
CUPTI_ACTIVITY_KIND_KERNEL start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid demangledName! shortName! mangledName launchType cacheConfig registersPerThread! gridX! gridY! gridZ! blockX! blockY! blockZ! staticSharedMemory! dynamicSharedMemory! localMemoryPerThread! localMemoryTotal! gridId! sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig qmdBulkReleaseDone qmdPreexitDone qmdLastCtaDone graphId clusterX clusterY clusterZ clusterSchedulingPolicy maxPotentialClusterSize maxActiveClusters sharedMemoryRequestedPercentage
CUPTI_ACTIVITY_KIND_KERNEL start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid demangledName! shortName! mangledName launchType cacheConfig registersPerThread! gridX! gridY! gridZ! blockX! blockY! blockZ! staticSharedMemory! dynamicSharedMemory! localMemoryPerThread! localMemoryTotal! gridId! sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig qmdBulkReleaseDone qmdPreexitDone qmdLastCtaDone graphId clusterX clusterY clusterZ clusterSchedulingPolicy maxPotentialClusterSize maxActiveClusters sharedMemoryRequestedPercentage tensorSizeMinusOneElements$!
CUPTI_ACTIVITY_KIND_KERNEL start! end! deviceId! contextId! streamId! correlationId globalPid demangledName! shortName! launchType cacheConfig registersPerThread! gridX! gridY! gridZ! blockX! blockY! blockZ! staticSharedMemory! dynamicSharedMemory! localMemoryPerThread! localMemoryTotal! gridId! sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig
CUPTI_ACTIVITY_KIND_KERNEL start! end! deviceId! contextId! streamId! correlationId globalPid demangledName! shortName! mangledName launchType cacheConfig registersPerThread! gridX! gridY! gridZ! blockX! blockY! blockZ! staticSharedMemory! dynamicSharedMemory! localMemoryPerThread! localMemoryTotal! gridId! sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig
CUPTI_ACTIVITY_KIND_RUNTIME start! end! eventClass!=0|1 globalTid correlationId nameId! returnValue! callchainId
CUPTI_ACTIVITY_KIND_MEMCPY start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid bytes! copyKind! deprecatedSrcId srcKind dstKind srcDeviceId srcContextId dstDeviceId dstContextId migrationCause graphNodeId virtualAddress
CUPTI_ACTIVITY_KIND_MEMCPY start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid bytes! copyKind! deprecatedSrcId srcKind dstKind srcDeviceId srcContextId dstDeviceId dstContextId migrationCause graphNodeId virtualAddress copyCount
CUPTI_ACTIVITY_KIND_MEMCPY start! end! deviceId! contextId! streamId! correlationId globalPid bytes! copyKind! deprecatedSrcId srcKind dstKind srcDeviceId srcContextId dstDeviceId dstContextId migrationCause graphNodeId
CUPTI_ACTIVITY_KIND_MEMCPY start! end! deviceId! contextId! streamId! correlationId globalPid bytes! copyKind! deprecatedSrcId srcKind dstKind srcDeviceId srcContextId dstDeviceId dstContextId migrationCause graphNodeId virtualAddress
CUPTI_ACTIVITY_KIND_MEMSET start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid value! bytes! graphNodeId memKind
CUPTI_ACTIVITY_KIND_MEMSET start! end! deviceId! contextId! streamId! correlationId globalPid value! bytes! graphNodeId memKind
CUPTI_ACTIVITY_KIND_SYNCHRONIZATION start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid deprecatedSyncType syncType! eventId! eventSyncId
CUPTI_ACTIVITY_KIND_SYNCHRONIZATION start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid syncType! eventId!
CUPTI_ACTIVITY_KIND_SYNCHRONIZATION start! end! deviceId! contextId! streamId! correlationId globalPid syncType! eventId!
CUPTI_ACTIVITY_KIND_GRAPH_TRACE start! end! deviceId! contextId! streamId! correlationId globalPid graphId! graphExecId!
OSRT_API start! end! eventClass!=^0|1 globalTid correlationId nameId! returnValue! nestingLevel callchainId!
OSRT_API start! end! eventClass!=^0|1 globalTid nameId! returnValue! nestingLevel callchainId!
OSRT_API start! end! eventClass!=^0|1 globalTid nameId! returnValue! nestingLevel callchainId! argumentsId!
CUDA_GRAPH_NODE_EVENTS start! end! eventClass!=77 globalTid nameId! graphNodeId! originalGraphNodeId
CUDA_GPU_MEMORY_USAGE_EVENTS start! globalPid! deviceId! contextId! address! pc! bytes! memKind! memoryOperationType! name$ correlationId localMemoryPoolAddress localMemoryPoolReleaseThreshold localMemoryPoolSize localMemoryPoolUtilizedSize importedMemoryPoolAddress importedMemoryPoolProcessId
PROFILER_OVERHEAD start! end! globalTid nameId! overheadType!
GPU_METRICS rawTimestamp! timestamp! typeId! metricId! value!
GPU_METRICS timestamp typeId! metricId! value!
SCHED_EVENTS start! cpu! isSchedIn! globalTid
SCHED_EVENTS start! cpu! isSchedIn! globalTid threadState threadBlock
NVTX_EVENTS start! end eventType! rangeId category color text$ globalTid endGlobalTid textId domainId uint64Value int64Value doubleValue~ uint32Value int32Value floatValue~ jsonTextId jsonText$
NVTX_EVENTS start! end eventType! rangeId category color text$ globalTid endGlobalTid textId domainId uint64Value int64Value doubleValue~ uint32Value int32Value floatValue~ jsonTextId jsonText$ binaryData$
`

// A shape is what the rows of a table look like.
type shape struct {
	table   string
	columns []Column
	begin   []string // prefixes of values, by column; "" is any value
	not     []bool   // values must not have the prefix
}

// shapes are the shapes of shapeText, parsed when first needed: few exports are damaged.
var shapes = sync.OnceValue(func() (list []shape) {
	for line := range strings.Lines(strings.TrimSpace(shapeText)) {
		words := strings.Fields(line)
		s := shape{table: words[0]}
		for _, word := range words[1:] {
			word, begin, _ := strings.Cut(word, "=")
			begin, not := strings.CutPrefix(begin, "^")
			name := strings.TrimRight(word, "$~!*")
			marks := word[len(name):]
			c := Column{Name: name, Kind: "INTEGER", NotNull: strings.ContainsAny(marks, "!*"), Key: strings.Contains(marks, "*")}
			switch {
			case strings.Contains(marks, "$"):
				c.Kind = "TEXT"
			case strings.Contains(marks, "~"):
				c.Kind = "REAL"
			}
			s.columns, s.begin, s.not = append(s.columns, c), append(s.begin, begin), append(s.not, not)
		}
		list = append(list, s)
	}
	return list
})

// definition returns the statement that creates a table of the shape.
func (s *shape) definition() string {
	columns := make([]string, len(s.columns))
	for i, c := range s.columns {
		columns[i] = tablefile.Quote(c.Name) + " " + c.Kind
		switch {
		case c.Key:
			columns[i] += " PRIMARY KEY"
		case c.NotNull:
			columns[i] += " NOT NULL"
		}
	}
	return "CREATE TABLE " + tablefile.Quote(s.table) + " (" + strings.Join(columns, ", ") + ")"
}

// has reports whether rows can be those of a table of the shape. nsys writes all columns of a row.
func (s *shape) has(rows []record) bool {
	return !slices.ContainsFunc(rows, func(r record) bool {
		return len(r.kinds) != len(s.columns) || !alike(slices.Clone(r.kinds), s.columns) || !s.plausible(r.values())
	})
}

// plausible reports whether the values of a row match the names of the columns.
func (s *shape) plausible(values []value) bool {
	start := int64(0)
	for i, v := range values {
		c := &s.columns[i]
		if v.null != (c.Key && c.Kind == "INTEGER") && (v.null && c.NotNull || c.Key) {
			return false // the primary key is the row number, and stored as NULL
		}
		if begin := s.begin[i]; begin != "" && v.begins(begin) == s.not[i] {
			return false
		}
		if v.null || v.isText {
			continue
		}
		if c.Name == "start" {
			start = v.n
		}
		if check := checks[c.Name]; check != nil && !check(v.n) || c.Name == "end" && v.n != 0 && v.n < start {
			return false
		}
	}
	return true
}

// begins reports whether a value begins with one of several texts, separated by |, or equals one of several
// numbers.
func (v value) begins(texts string) bool {
	return slices.ContainsFunc(strings.Split(texts, "|"), func(text string) bool {
		if v.isText {
			return bytes.HasPrefix(v.text, []byte(text))
		}
		return strconv.FormatInt(v.n, 10) == text
	})
}

// checks are conditions on values, by column.
var checks = map[string]func(int64) bool{
	"start":      isTime,
	"end":        isTime,
	"timestamp":  isTime,
	"utcEpochNs": func(v int64) bool { return v > 1e18 && v < 4e18 },
	"globalPid":  func(v int64) bool { return v<<16 == 0 || v&(1<<24-1) == 0 && v>>48 != 0 },
	"globalTid":  func(v int64) bool { return v<<16 == 0 || v&(1<<24-1) != 0 && v>>48 != 0 },
	"copyKind":   func(v int64) bool { return v > 0 && v < 32 },
	"syncType":   func(v int64) bool { return v >= 0 && v < 16 },
	"severity":   func(v int64) bool { return v >= 0 && v < 8 },
	"isSchedIn":  func(v int64) bool { return v == 0 || v == 1 },
	"pid":        isPID,
	"processId":  isPID,
	"globalVid":  func(v int64) bool { return v<<16 == 0 },
	"typeId":     func(v int64) bool { return v>>48 != 0 && v&(1<<32-1) < 1<<16 },
	"cpu":        func(v int64) bool { return v >= 0 && v < 1<<16 },
	"nameId":     isID,
	"textId":     isID,
	"gridX":      isID,
}

// isTime reports whether a number can be a time within a session, in ns: less than four months.
func isTime(v int64) bool { return v > -1e13 && v < 1e16 }

func isID(v int64) bool { return v >= 0 && v < 1<<32 }

func isPID(v int64) bool { return v >= 0 && v < 1<<24 }
