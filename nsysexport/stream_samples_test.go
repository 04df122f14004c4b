package nsysexport

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/nsysexport/internal/nsystest"
	"github.com/sgtrace/sgtrace/nsysexport/rows"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Memory is the running sum of allocations and frees. GPU metrics belong to the only rank that uses
// the GPU, or else to the machine.
func TestSamplesOfStream(t *testing.T) {
	path := nsystest.Database(t, nsystest.Schema2024+fmt.Sprintf(`
		INSERT INTO TARGET_INFO_SYSTEM_ENV (globalVid, devStateName, name, nameEnum, value) VALUES (0, '', 'Hostname', 0, 'node7');
		CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER, uuid TEXT, numMultiprocessors INTEGER);
		INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (3, 0, 41, 'a', 1), (4, 0, 42, 'b', 1), (5, 0, 43, 'c', 1), (5, 0, 44, 'c', 1);
		CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, globalPid INTEGER, deviceId INTEGER, bytes INTEGER, memKind INTEGER, memoryOperationType INTEGER);
		INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (1, %[1]d, 0, 4096, 2, 0), (2, %[1]d, 0, 1024, 1, 0), (3, %[2]d, 0, 7, 2, 0), (4, %[1]d, 0, 4000, 2, 1);
		CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER, sourceId INTEGER, typeName TEXT, metricId INTEGER, metricName TEXT);
		INSERT INTO TARGET_INFO_GPU_METRICS VALUES (3, 1, 'GPU Metrics [3]', 7, 'SMs Active [Throughput %%]'), (5, 1, 'GPU Metrics [5]', 7, 'GPC Clock Frequency [MHz]');
		CREATE TABLE GPU_METRICS (timestamp INTEGER, typeId INTEGER, metricId INTEGER, value INTEGER);
		INSERT INTO GPU_METRICS VALUES (90, 3, 7, 55), (91, 5, 7, 1400), (92, 3, 7, 56);
		CREATE TABLE NET_NIC_METRIC (start INTEGER, end INTEGER, globalId INTEGER, metricsListId INTEGER, metricsIdx INTEGER, value INTEGER);
		INSERT INTO NET_NIC_METRIC VALUES (10, 20, 255, 0, 0, 9);`, nsystest.TID(41, 0), nsystest.TID(42, 0)))
	src, err := rows.Open(path, rows.Options{Syms: trace.NewSymbols(), Brief: true})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	st := NewStream(src, func(pid int32) int32 {
		if pid == 42 {
			return -1
		}
		return pid - 41
	})
	var got []string
	st.CounterValues(func(s *profile.CounterValue) bool {
		name := src.Options.Syms.Name
		got = append(got, fmt.Sprintf("%d %d %s: %s %g %s %d", s.Time, s.Rank, name(s.Source), name(s.Name), s.Value, name(s.Unit), s.Kind))
		return true
	})
	want := []string{
		"1 0 GPU 0: memory in use: Device 4096 bytes 0", "2 0 GPU 0: memory in use: Pinned 1024 bytes 0", "4 0 GPU 0: memory in use: Device 96 bytes 0",
		"90 0 GPU 3: SMs Active 55 % 1", "91 -1 GPU 5 of node7: GPC Clock Frequency 1400 MHz 1", "92 0 GPU 3: SMs Active 56 % 1",
		"20 -1 NIC 0xff of node7: metric 0 of list 0 9  2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}
