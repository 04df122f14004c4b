package nsystest

import (
	"fmt"
	"strings"
)

// EveryTable is an export with all tables that are read, and some that are not. Event
// tables have n rows each, on several pages.
func EveryTable(n int) string {
	var b strings.Builder
	b.WriteString(Schema2024 + `
		CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, uuid TEXT);
		CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL, uuid TEXT);
		CREATE TABLE TARGET_INFO_CUDA_STREAM (streamId INTEGER NOT NULL, processId INTEGER NOT NULL, contextId INTEGER NOT NULL, priority INTEGER NOT NULL);
		CREATE TABLE TARGET_INFO_CUDA_CONTEXT_INFO (nullStreamId INTEGER NOT NULL, processId INTEGER NOT NULL, contextId INTEGER NOT NULL);
		CREATE TABLE MPI_RANKS (globalPid INTEGER, rank INTEGER);
		CREATE TABLE DIAGNOSTIC_EVENT (timestamp INTEGER NOT NULL, timestampType INTEGER NOT NULL, source INTEGER NOT NULL,
			severity INTEGER NOT NULL, text TEXT NOT NULL, globalPid INTEGER);
		CREATE TABLE CUPTI_ACTIVITY_KIND_DRIVER (start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL);
		CREATE TABLE OSRT_API (start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, nameId INTEGER NOT NULL, nestingLevel INTEGER);
		CREATE TABLE PROFILER_OVERHEAD (start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, nameId INTEGER NOT NULL);
		CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
			correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER);
		CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
			correlationId INTEGER, globalPid INTEGER, value INTEGER, bytes INTEGER NOT NULL);
		CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
			correlationId INTEGER, globalPid INTEGER, syncType INTEGER NOT NULL, eventId INTEGER);
		CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
			correlationId INTEGER, globalPid INTEGER, graphId INTEGER NOT NULL, graphExecId INTEGER NOT NULL);
		CREATE TABLE CUDA_GRAPH_NODE_EVENTS (start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, nameId INTEGER, graphNodeId INTEGER NOT NULL, originalGraphNodeId INTEGER);
		CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER NOT NULL, globalPid INTEGER, deviceId INTEGER, address INTEGER, bytes INTEGER NOT NULL, memKind INTEGER, memoryOperationType INTEGER NOT NULL);
		CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER NOT NULL, typeName TEXT, metricId INTEGER NOT NULL, metricName TEXT);
		CREATE TABLE GPU_METRICS (timestamp INTEGER, typeId INTEGER NOT NULL, metricId INTEGER NOT NULL, value INTEGER NOT NULL);
		CREATE TABLE NET_NIC_METRIC (start INTEGER NOT NULL, end INTEGER NOT NULL, globalId INTEGER NOT NULL, portId INTEGER, nameId INTEGER NOT NULL, value REAL NOT NULL);
		CREATE TABLE SCHED_EVENTS (start INTEGER NOT NULL, cpu INTEGER NOT NULL, isSchedIn INTEGER NOT NULL, globalTid INTEGER);
		CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER NOT NULL, schemaId INTEGER NOT NULL, idx INTEGER NOT NULL, type INTEGER, name TEXT, offset INTEGER);
		CREATE TABLE COMPOSITE_EVENTS (id INTEGER NOT NULL PRIMARY KEY, start INTEGER NOT NULL, cpuCycles INTEGER);
		INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2024.5.1'), ('EXPORT_SCHEMA_VERSION', '3.13.2');
		INSERT INTO META_DATA_CAPTURE VALUES ('CUDA_GRAPH_TRACE_OPTIONS:MODE', 'Node');
		INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, '', 'Hostname', 619, 'node7');
		INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, '', '');
		INSERT INTO ANALYSIS_DETAILS VALUES (0, 9000000000, 0, 9000000000);
		INSERT INTO TARGET_INFO_GPU VALUES (0, 6, 'H100', '0000:18:00.0', 'u6');
		INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (6, 0, 40, 'u6');
		INSERT INTO TARGET_INFO_CUDA_STREAM VALUES (7, 40, 1, 0), (13, 40, 1, -5);
		INSERT INTO TARGET_INFO_CUDA_CONTEXT_INFO VALUES (7, 40, 1);
		INSERT INTO TARGET_INFO_GPU_METRICS VALUES (17, 'GPU 0', 1, 'SMs Active'), (17, 'GPU 0', 2, 'DRAM');
		INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, 2, 0, 5, 'Rank', 0);
		INSERT INTO StringIds VALUES (0, '[Unknown]'), (1, 'the name of a thread'), (2, replace(hex(zeroblob(6000)), '0', 'long '));
	`)
	fill := func(table, values string, rows int) {
		fmt.Fprintf(&b, "WITH RECURSIVE i(x) AS (SELECT 0 UNION ALL SELECT x+1 FROM i WHERE x<%d-1) INSERT INTO %s SELECT %s FROM i;\n", rows, table, values)
	}
	const start, pid, thread = "2000000000+x*9137", "281474976710656+(40+x%4)*16777216", "281474976710656+(40+x%4)*16777216+40+x%4"
	const times = start + ", " + start + "+5000+x%4096"
	const place = times + ", x%8, 1, 7+x%3, x, " + pid
	fill("StringIds", "x+3, 'void some_namespace::kernel_' || x || '<float, int>(float*, const float*, int)'", n)
	fill("PROCESSES", "281474976710656+(40+x)*16777216, 40+x, 'sglang::scheduler_TP' || x", 4)
	fill("ThreadNames", "1, 20, 281474976710656+(40+x)*16777216+40+x", 4)
	fill("MPI_RANKS", "281474976710656+(40+x)*16777216, x", 4)
	fill("DIAGNOSTIC_EVENT", start+", 1, 1, 1+x%3, 'events lost ' || x, NULL", n/2)
	fill("CUPTI_ACTIVITY_KIND_KERNEL", times+", x%8, 1, NULL, 7, x, "+pid+", 3+x%"+fmt.Sprint(n)+", 3, NULL, 1, 0, 64, 132, x%7, 1, 256, 1, 1, 1024, 49152, 0, 0, x, 49152, NULL, 0", n)
	fill("CUPTI_ACTIVITY_KIND_RUNTIME", times+", x%2, "+thread+", x, 3+x%20, 0, NULL", n)
	fill("CUPTI_ACTIVITY_KIND_DRIVER", times+", "+thread+", x, 3+x%20", n)
	fill("OSRT_API", times+", "+thread+", 3+x%20, x%2", n)
	fill("PROFILER_OVERHEAD", times+", "+thread+", 3", n)
	fill("CUPTI_ACTIVITY_KIND_MEMCPY", place+", x*64, 1+x%2, 0, 2", n)
	fill("CUPTI_ACTIVITY_KIND_MEMSET", place+", 0, x*64", n)
	fill("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", place+", 1+x%4, x", n)
	fill("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", place+", x%5, x%7", n)
	fill("CUDA_GRAPH_NODE_EVENTS", times+", "+thread+", 3+x%20, 100+x, NULL", n)
	fill("CUDA_GPU_MEMORY_USAGE_EVENTS", start+", "+pid+", 0, x*4096, x*64, 2, x%2", n)
	fill("GPU_METRICS", start+", 17, 1+x%2, x%100", n)
	fill("NET_NIC_METRIC", times+", 17, 1, 3+x%2, x*1.5", n)
	fill("SCHED_EVENTS", start+", x%16, x%2, "+thread, n)
	fill("COMPOSITE_EVENTS", "x+1, "+start+", 1", n)
	fill("NVTX_EVENTS", times+", 59, NULL, NULL, NULL, CASE WHEN x%50=0 THEN replace(hex(zeroblob(3000)), '0', 'text ') ELSE 'step ' || x END, "+
		thread+", NULL, CASE WHEN x%50=1 THEN 2 END, 0, NULL, x, NULL, NULL, NULL, NULL, NULL, NULL, NULL", n)
	return b.String()
}
