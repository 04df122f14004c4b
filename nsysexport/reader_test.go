package nsysexport

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/nsysexport/internal/nsystest"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// profiles reads a database as profiles, and returns them with all their rows and events as text.
func profiles(t *testing.T, sql string, filter profile.Filter) ([]*profile.Profile, []string, []trace.Diag) {
	t.Helper()
	opt := rows.Options{Syms: trace.NewSymbols(), Args: trace.NewArgs(), Diags: &trace.Diags{}}
	all, err := readProfiles(nsystest.Database(t, nsystest.Schema2024+sql), opt, &filter)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, p := range all {
		where := func(row int) string {
			r := &p.Rows[row]
			name := r.Name
			if r.Unit != "" {
				name += " in " + r.Unit
			}
			return strings.TrimPrefix(strings.Join([]string{fmt.Sprint(p.Meta.PID), r.Folder, name}, "|"), "|")
		}
		for _, e := range p.Events {
			lines = append(lines, fmt.Sprintf("%s|%s %s %d+%d", where(int(e.Place.Row())), opt.Syms.Name(e.Cat), opt.Syms.Name(e.Name), e.Time, e.Dur))
		}
		for _, e := range p.Instants {
			lines = append(lines, fmt.Sprintf("%s|%s %d", where(int(e.Row)), opt.Syms.Name(e.Name), e.Time))
		}
		for _, e := range p.Samples {
			lines = append(lines, fmt.Sprintf("%s|%g %d", where(int(e.Row)), e.Value, e.Time))
		}
		for i := range p.Collectives.Len() {
			c := p.Collectives.At(i)
			lines = append(lines, fmt.Sprintf("%d|collective %s %s %s %d #%d", p.Meta.PID, opt.Syms.Name(c.Name), opt.Syms.Name(c.Op), opt.Syms.Name(c.Group), c.In, c.Seq))
		}
	}
	return all, lines, opt.Diags.All()
}

func expect(t *testing.T, lines []string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !slices.Contains(lines, w) {
			t.Errorf("there is no %s; there are\n%s", w, strings.Join(lines, "\n"))
			return
		}
	}
}

// Ranks come from MPI, from communicators, largest first, and from the environment, of which
// nothing else is kept.
func TestRankEvidence(t *testing.T) {
	kernel := fmt.Sprintf(`INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, globalPid, demangledName, shortName,
		registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory, dynamicSharedMemory, localMemoryPerThread, localMemoryTotal, gridId)
		VALUES (1, 2, 0, 1, 7, %d, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0); INSERT INTO StringIds VALUES (1, 'k');`, nsystest.TID(5, 0))
	environment := func(pairs ...string) string {
		sql := kernel
		for _, p := range pairs {
			sql += fmt.Sprintf("INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:ENVIRONMENT_VARIABLE', '%s');", p)
		}
		return sql
	}
	comm := func(size, rank int) string {
		return fmt.Sprintf(`INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId, jsonText) VALUES
			(1, 2, 59, 'ncclCommInitRank', %d, 1, '{"NCCL communicator ID": %d, "No. of ranks": %d, "Rank": %d}');`, nsystest.TID(5, 5), size*100, size, rank)
	}
	domain := fmt.Sprintf("INSERT INTO NVTX_EVENTS (start, eventType, text, globalTid, domainId) VALUES (0, 75, 'NCCL', %d, 1);", nsystest.TID(5, 5))
	for name, c := range map[string]struct {
		sql  string
		want string
	}{
		"none":                 {kernel, "rank -1 of -1, hints []"},
		"torchrun":             {environment(`RANK="3"`, `WORLD_SIZE="8"`, `LOCAL_RANK="1"`, `SECRET="s"`), "rank -1 of -1, hints [{environment 3 8}]"},
		"no size":              {environment(`RANK="3"`), "rank -1 of -1, hints []"},
		"outside of the world": {environment(`RANK="8"`, `WORLD_SIZE="8"`), "rank -1 of -1, hints []"},
		"two programs":         {environment(`RANK="3"`, `RANK="4"`, `WORLD_SIZE="8"`), "rank -1 of -1, hints []"},
		"srun and Open MPI":    {environment(`SLURM_PROCID="1"`, `SLURM_NTASKS="2"`, `OMPI_COMM_WORLD_RANK="5"`, `OMPI_COMM_WORLD_SIZE="6"`), "rank -1 of -1, hints [{environment 5 6} {environment 1 2}]"},
		"no number":            {environment(`RANK="$(id)"`, `WORLD_SIZE="8"`), "rank -1 of -1, hints []"},
		"communicators":        {kernel + domain + comm(4, 2) + comm(8, 6), "rank -1 of -1, hints [{NCCL 6 8} {NCCL 2 4}]"},
		"MPI": {kernel + fmt.Sprintf("CREATE TABLE MPI_RANKS (globalTid INTEGER, rank INTEGER); INSERT INTO MPI_RANKS VALUES (%d, 5), (%d, 4);", nsystest.TID(5, 5), nsystest.TID(6, 6)),
			"rank 5 of 6, hints []"},
	} {
		all, _, _ := profiles(t, c.sql, profile.Filter{})
		i := slices.IndexFunc(all, func(p *profile.Profile) bool { return p.Meta.PID == 5 })
		if i < 0 {
			t.Fatalf("%s: there is no process 5", name)
		}
		hints := fmt.Sprint(all[i].Meta.Hints)
		if got := fmt.Sprintf("rank %d of %d, hints %s", all[i].Meta.Rank, all[i].Meta.WorldSize, hints); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Kernels of collectives are described by the call that launched them: the call around the launch,
// the only call in a bundle, or the call during which a graph node was created.
func TestCollectivesOfCalls(t *testing.T) {
	thread, process := nsystest.TID(5, 5), nsystest.TID(5, 0)
	nccl := func(start, end int, text, json string) string {
		return fmt.Sprintf("INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId, jsonText) VALUES (%d, %d, 59, '%s', %d, 1, nullif('%s', ''));", start, end, text, thread, json)
	}
	call := func(at, correlation int) string {
		return fmt.Sprintf("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (%d, %d, 0, %d, %d, 2, 0, NULL);", at, at+1, thread, correlation)
	}
	kernel := func(at, correlation int, node string) string {
		return fmt.Sprintf(`INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, correlationId, globalPid, demangledName, shortName,
			graphNodeId, registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory, dynamicSharedMemory, localMemoryPerThread, localMemoryTotal, gridId)
			VALUES (%d, %d, 0, 1, 7, %d, %d, 1, 1, %s, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);`, at, at+5, correlation, process, node)
	}
	const sends = `{"NCCL communicator ID": 255, "Message size [bytes]": %d}`
	export := fmt.Sprintf(`INSERT INTO StringIds VALUES (1, 'ncclDevKernel_X'), (2, 'cudaLaunchKernel_v7000');
		CREATE TABLE CUDA_GRAPH_NODE_EVENTS (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, nameId INTEGER, graphNodeId INTEGER, originalGraphNodeId INTEGER);
		INSERT INTO CUDA_GRAPH_NODE_EVENTS VALUES (45, 46, 77, %d, 2, 900, NULL), (60, 61, 77, %[1]d, 2, 901, 900);
		INSERT INTO NVTX_EVENTS (start, eventType, text, globalTid, domainId) VALUES (0, 75, 'NCCL', %[1]d, 1);`, thread) +
		nccl(1, 2, "ncclCommInitRank", `{"NCCL communicator ID": 255, "No. of ranks": 4, "Rank": 1}`) +
		nccl(10, 15, "ncclAllReduce", fmt.Sprintf(sends, 64)) + call(12, 1) + kernel(100, 1, "NULL") +
		nccl(20, 21, "ncclGroupStart", "") + nccl(22, 23, "ncclAllGather", fmt.Sprintf(sends, 32)) + nccl(24, 29, "ncclGroupEnd", "") + call(26, 2) + kernel(110, 2, "NULL") +
		nccl(30, 31, "ncclGroupStart", "") + nccl(32, 33, "ncclSend", fmt.Sprintf(sends, 1)) + nccl(33, 34, "ncclRecv", fmt.Sprintf(sends, 1)) + nccl(34, 39, "ncclGroupEnd", "") +
		call(36, 3) + kernel(120, 3, "NULL") +
		nccl(44, 48, "ncclReduceScatter", fmt.Sprintf(sends, 16)) + call(70, 4) + kernel(130, 4, "901") + kernel(140, 4, "902") +
		call(80, 5) + kernel(150, 5, "NULL") +
		fmt.Sprintf("INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid) VALUES (8, 14, 59, 'step[DECODE bs=2]', %d);", thread)
	want := []string{"allreduce NCCL 0xff 64 #0", "allgather NCCL 0xff 32 #1", "  -1 #-1", "reducescatter NCCL 0xff 16 #-1", "  -1 #-1", "  -1 #-1"}
	for _, filter := range []profile.Filter{{}, {IndexOnly: true}, {IndexOnly: true, CollectivesOnly: true}} {
		all, lines, _ := profiles(t, export, filter)
		var got []string
		for _, l := range lines {
			if strings.Contains(l, "|collective ") {
				got = append(got, strings.TrimPrefix(l, "5|collective ncclDevKernel_X "))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: collectives are\n%s\nwant\n%s", filter, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if all[0].Collectives.At(0).Step != profile.StepDecode {
			t.Errorf("%+v: the step of a collective is not known", filter)
		}
		for i := range all[0].Collectives.Len() {
			c := all[0].Collectives.At(i)
			if row := all[0].Rows[c.Row]; row.Kind != profile.RowStream || row.TID != 7 {
				t.Errorf("%+v: a collective is on %+v", filter, row)
			}
		}
	}
}

// All other data of an export has a place: ranges by domain, calls by library, scheduled times of
// threads, counters with units. Messages of the profiler are reported.
func TestRowsOfProfiles(t *testing.T) {
	thread, process := nsystest.TID(5, 6), nsystest.TID(5, 0)
	sql := fmt.Sprintf(`
		INSERT INTO ANALYSIS_DETAILS VALUES (0, 1000, 0, 1000);
		INSERT INTO StringIds VALUES (1, 'poll'), (2, 'worker'), (3, 'cudnnForward'), (4, 'Instrumentation');
		INSERT INTO ThreadNames VALUES (2, 0, %[1]d);
		INSERT INTO PROCESSES VALUES (%[2]d, 5, '/home/me/serve');
		CREATE TABLE OSRT_API (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, nameId INTEGER, returnValue INTEGER, nestingLevel INTEGER);
		INSERT INTO OSRT_API VALUES (10, 20, 27, %[1]d, 1, 0, 0);
		CREATE TABLE CUDNN_EVENTS (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, nameId INTEGER);
		INSERT INTO CUDNN_EVENTS VALUES (11, 12, 40, %[1]d, 3);
		CREATE TABLE SCHED_EVENTS (start INTEGER, cpu INTEGER, isSchedIn INTEGER, globalTid INTEGER);
		INSERT INTO SCHED_EVENTS VALUES (5, 3, 0, %[1]d), (30, 2, 1, %[1]d), (40, 2, 0, %[1]d), (900, 1, 1, %[1]d);
		INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId) VALUES (1, NULL, 75, 'lib', %[1]d, 3),
			(50, 60, 59, 'inner', %[1]d, 3), (50, 60, 59, NULL, %[1]d, 0), (55, 1000, 59, 'open', %[1]d, 0), (56, NULL, 34, 'mark', %[1]d, 0), (57, 58, 60, 'async', %[1]d, 0);
		CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER, eventId INTEGER);
		INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (70, 80, 0, 1, 7, 9, %[2]d, 3, 4294967295);
		CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, globalPid INTEGER, deviceId INTEGER, bytes INTEGER, memKind INTEGER, memoryOperationType INTEGER);
		INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (1, %[2]d, 0, 4096, 2, 0), (2, %[2]d, 0, 1024, 2, 0), (3, %[2]d, 0, 4096, 2, 1);
		CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER, sourceId INTEGER, typeName TEXT, metricId INTEGER, metricName TEXT);
		INSERT INTO TARGET_INFO_GPU_METRICS VALUES (1, 1, 'GPU Metrics [1]', 7, 'SMs Active [Throughput %%]');
		CREATE TABLE GPU_METRICS (timestamp INTEGER, typeId INTEGER, metricId INTEGER, value INTEGER);
		INSERT INTO GPU_METRICS VALUES (90, 1, 7, 55);
		CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphId INTEGER, graphExecId INTEGER);
		INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (200, 300, 0, 1, 7, 21, %[2]d, 3, 5), (0, 0, 0, 1, 7, 22, %[2]d, 3, 5), (310, 305, 0, 1, 7, 23, %[2]d, 3, 5);
		CREATE TABLE DIAGNOSTIC_EVENT (timestamp INTEGER, timestampType INTEGER, source INTEGER, severity INTEGER, text TEXT, globalPid INTEGER);
		INSERT INTO DIAGNOSTIC_EVENT VALUES (1, 0, 1, 2, 'some
			events are lost', NULL), (1, 0, 1, 1, '/home/me is fine', NULL), (2, 0, 1, 3, 'all is lost', NULL),
			(3, 0, 1, 2, 'No OpenGL events collected. Does the process use OpenGL?', NULL), (3, 0, 1, 2, 'No CUDA events collected. Does the process use CUDA?', NULL),
			(4, 0, 1, 3, 'Unable to configure the collection of CPU IP/backtrace samples', NULL), (5, 0, 1, 1, 'Some CUPTI events might be missing.', NULL);`, thread, process)
	_, lines, diags := profiles(t, sql, profile.Filter{})
	expect(t, lines,
		"5|thread 6 (worker)|OS runtime|osrt poll 10+10", "5|thread 6 (worker)|cuDNN|cudnn cudnnForward 11+1",
		"5|thread 6 (worker)|running|sched running 0+5", "5|thread 6 (worker)|running|sched running 30+10", "5|thread 6 (worker)|running|sched running 900+100",
		"5|thread 6 (worker)|NVTX lib|nvtx inner 50+10", "5|thread 6 (worker)|NVTX|nvtx (no name) 50+10", "5|thread 6 (worker)|NVTX|nvtx open (never closed) 55+945",
		"5|thread 6 (worker)|NVTX|mark 56", "5||NVTX start/end ranges|nvtx async 57+1", "5|CUDA > GPU 0|waits|cuda_sync Stream Sync 70+10",
		"5|CUDA > GPU 0|memory allocated (Device) on GPU 0 in bytes|4096 1", "5|CUDA > GPU 0|memory allocated (Device) on GPU 0 in bytes|1024 3",
		"0|GPU 1|SMs Active in %|55 90", "5|CUDA > GPU 0|stream 7|kernel CUDA graph 3 200+100")
	var said []string
	for _, d := range diags {
		said = append(said, d.Code+": "+d.Msg)
	}
	expect(t, said, "nsys-warning: the profiler says: some events are lost | No CUDA events collected. Does the process use CUDA? | Unable to configure the collection of CPU IP/backtrace samples",
		"nsys-error: the profiler says: all is lost | Some CUPTI events might be missing.",
		"nsys-graph-untimed: the GPU recorded no times for 2 runs of CUDA graphs; they are not drawn")

	_, lines, _ = profiles(t, sql, profile.Filter{Cats: []string{"NVTX"}, Names: regexp.MustCompile("inn|async"), MinDur: 5})
	if want := []string{"5|thread 6 (worker)|NVTX lib|nvtx inner 50+10"}; !slices.Equal(slices.DeleteFunc(lines, func(l string) bool { return !strings.Contains(l, "+") }), want) {
		t.Errorf("filtered, there are %q", lines)
	}
}
