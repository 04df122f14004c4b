package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sgtrace/sgtrace/golden/nsys"
	"github.com/sgtrace/sgtrace/internal/order"
)

// What the export of one host with eight ranks looks like: launches in lockstep,
// a kernel for each, every twelfth of them a collective on a stream of its own.
const (
	exportRanks   = 8
	firstPID      = 4100
	launchEvery   = 13_000 // ns, on each rank
	launchLead    = 8_000  // from a call to its kernel
	firstLaunch   = 3_000_000_000
	collectiveOf  = 12
	launchesLayer = 16
	launchesStep  = 30 * launchesLayer
	callFrames    = 3
	sampleFrames  = 8
)

// writeExport writes an export of Nsight Systems, DIR/node0.sqlite, with as many
// rows of kernels and calls, half of each, and with a tenth as many NVTX ranges,
// which nest three deep on the threads that launch. Half of the file are call
// stacks, as in real exports: 12.5 million rows make two gigabytes. samples is how
// many samples there are of the threads that launch, each with its stack.
func writeExport(dir string, rows, samples int) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	db, err := nsys.Create(filepath.Join(dir, "node0.sqlite"), nsys.Schema2026)
	if err != nil {
		return err
	}
	launches := rows / 2 / exportRanks
	exportHead(db, launches)
	exportCalls(db, launches)
	exportKernels(db, launches)
	exportRanges(db, launches)
	exportStacks(db, launches)
	exportSamples(db, launches, samples)
	return db.Close()
}

func pidOf(rank int) int { return firstPID + 37*rank }

func globalPID(rank int) int64 { return nsys.GlobalPID(pidOf(rank)) }

func globalTID(rank int) int64 { return nsys.GlobalTID(pidOf(rank), pidOf(rank)) }

// callStart returns when a rank makes a launch.
func callStart(i, rank int) int64 {
	return firstLaunch + int64(i)*launchEvery + int64(rank)*launchEvery/exportRanks
}

// mix scatters numbers, the same in every run.
func mix(i, rank int) int64 {
	x := uint64(i*exportRanks+rank+1) * 0x9e3779b97f4a7c15
	return int64((x ^ x>>29) * 0xbf58476d1ce4e5b9 >> 33)
}

// exportHead writes what an export says about itself and its processes.
func exportHead(db *nsys.DB, launches int) {
	schema, product := db.Schema.Version()
	meta := db.Table("META_DATA_EXPORT")
	for _, kv := range [][2]string{{"EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems"}, {"EXPORT_PRODUCT_VERSION", product},
		{"EXPORT_SCHEMA_VERSION", schema}, {"EXPORT_CONFIG_TIME_SHIFT", "0"}} {
		meta.Insert("name", kv[0], "value", kv[1])
	}
	db.Insert("META_DATA_CAPTURE", "name", "CUDA_GRAPH_TRACE_OPTIONS:MODE", "value", "Node")
	db.Insert("TARGET_INFO_SYSTEM_ENV", "name", "Hostname", "value", "node0")
	db.Insert("TARGET_INFO_SESSION_START_TIME", "utcEpochNs", 1_780_000_000_123_456_789, "systemClockNs", 86_400_000_000_000)
	db.Insert("ANALYSIS_DETAILS", "globalVid", nsys.GlobalVID(), "duration", callStart(launches, 0)+1_000_000_000, "startTime", 86_400_000_000_000,
		"stopTime", 86_400_000_000_000+callStart(launches, 0)+1_000_000_000)
	for rank := range exportRanks {
		name := fmt.Sprintf("sglang::scheduler_TP%d", rank)
		db.Insert("PROCESSES", "globalPid", globalPID(rank), "pid", int64(pidOf(rank)), "name", name)
		db.Insert("ThreadNames", "nameId", nsys.ID(name), "priority", 20, "globalTid", globalTID(rank))
	}
}

// exportCalls writes the launches.
func exportCalls(db *nsys.DB, launches int) {
	var names []int64
	for _, name := range []string{"cuLaunchKernelEx", "cudaLaunchKernel_v7000", "cudaLaunchKernelExC_v11060"} {
		names = append(names, db.StringID(name))
	}
	t := db.Table("CUPTI_ACTIVITY_KIND_RUNTIME")
	for i := range launches {
		for rank := range exportRanks {
			start, r := callStart(i, rank), mix(i, rank)
			t.Set("start", start, "end", start+2_500+r%2_000)
			class := int64(0)
			if i%3 == 0 {
				class = 1 // of the driver
			}
			t.Insert("eventClass", class, "globalTid", globalTID(rank), "correlationId", int64(i+1000), "nameId", names[i%3],
				"callchainId", int64(i*exportRanks+rank+1))
		}
	}
}

// exportKernels writes a kernel for each launch.
func exportKernels(db *nsys.DB, launches int) {
	names := kernelNames()
	ids := order.Each(names, func(n kernelName) [3]int64 {
		return [3]int64{db.StringID(n.demangled), db.StringID(n.short), db.StringID(n.mangled)}
	})
	t := db.Table("CUPTI_ACTIVITY_KIND_KERNEL")
	for column, v := range map[string]int64{
		"contextId": 1, "greenContextId": 0, "launchType": 1, "cacheConfig": 1, "gridY": 1, "gridZ": 1, "blockY": 1,
		"blockZ": 1, "localMemoryTotal": 250_871_808, "sharedMemoryLimitConfig": 0, "clusterX": 0, "clusterY": 0,
		"clusterZ": 0, "clusterSchedulingPolicy": 1, "maxPotentialClusterSize": 0, "maxActiveClusters": 0,
	} {
		t.Set(column, v)
	}
	t.Set("tensorSizeMinusOneElements", "[]")
	for i := range launches {
		for rank := range exportRanks {
			exportKernel(t, i, rank, ids)
		}
	}
}

func exportKernel(t *nsys.Table, i, rank int, names [][3]int64) {
	r := mix(i, rank)
	start := callStart(i, rank) + launchLead + r%(launchEvery/exportRanks)
	name, stream, took := names[i%launchesStep*7%(len(names)-1)+1], int64(7), 2_000+r%8_000
	if i%collectiveOf == 0 {
		name, stream, took = names[0], 20, 9_000+r%30_000
	}
	t.Insert("start", start, "end", start+took, "deviceId", int64(rank), "streamId", stream, "correlationId", int64(i+1000),
		"globalPid", globalPID(rank), "demangledName", name[0], "shortName", name[1], "mangledName", name[2],
		"registersPerThread", 32+8*(name[0]%20), "gridX", 132+4*(name[0]%300), "blockX", 128<<(name[0]%3),
		"dynamicSharedMemory", 1024*(name[0]%200), "gridId", int64(i+1000), "sharedMemoryExecuted", 1024*(name[0]%200)+16_384)
}

// exportStacks writes the stacks of the launches. Each launch of a step comes from a place of
// its own in the code, the same in all steps. That makes 480 different stacks; real captures
// have 6 to 123 of calls, and up to 1,338 of samples.
func exportStacks(db *nsys.DB, launches int) {
	t := db.Table("CUDA_CALLCHAINS")
	symbols := exportFunctions(db, t)
	for i := range launches {
		for rank := range exportRanks {
			t.Set("id", int64(i*exportRanks+rank+1))
			exportStack(t, symbols, i%launchesStep, callFrames)
		}
	}
}

// exportFunctions returns the names of functions, and sets what all frames have alike.
func exportFunctions(db *nsys.DB, t *nsys.Table) []int64 {
	var symbols []int64
	for i := range 500 {
		symbols = append(symbols, db.StringID(fmt.Sprintf("at::native::dispatch_%d(at::Tensor const&)", i)))
	}
	t.Set("module", nsys.ID("/usr/local/lib/python3.12/dist-packages/torch/lib/libtorch_cuda.so"), "unwindMethod", 2)
	return symbols
}

// exportStack writes the frames of a stack, which depend on a place in the code.
func exportStack(t *nsys.Table, symbols []int64, place, frames int) {
	for depth := range frames {
		symbol := (place*3 + depth*11) % len(symbols)
		t.Insert("symbol", symbols[symbol], "originalIP", 0x7f1c_0000_0000+int64(symbol)*256, "stackDepth", int64(depth))
	}
}

// exportSamples writes samples of the threads that launch, at even distances.
func exportSamples(db *nsys.DB, launches, samples int) {
	events, chains := db.Table("COMPOSITE_EVENTS"), db.Table("SAMPLING_CALLCHAINS")
	symbols := exportFunctions(db, chains)
	for i := range samples {
		at := int64(float64(i) / float64(samples) * float64(callStart(launches, 0)-firstLaunch))
		events.Insert("id", int64(i+1), "start", firstLaunch+at, "cpu", int64(i%exportRanks), "threadState", 1,
			"globalTid", globalTID(i%exportRanks), "cpuCycles", 1_000_000)
		chains.Set("id", int64(i+1))
		exportStack(chains, symbols, int(mix(i, 0)%launchesStep), sampleFrames)
	}
}

// exportRanges writes steps, layers and halves of layers.
func exportRanges(db *nsys.DB, launches int) {
	t := db.Table("NVTX_EVENTS")
	t.Set("eventType", 59, "domainId", 0)
	half := int64(launchesLayer / 2 * launchEvery)
	texts := [...]int64{db.StringID("self_attn"), db.StringID("mlp")}
	for i := 0; i < launches; i += launchesLayer / 2 {
		for rank := range exportRanks {
			start := callStart(i, rank)
			t.Set("globalTid", globalTID(rank), "textId", nil)
			if i%launchesStep == 0 {
				exportRange(t, fmt.Sprintf("step[DECODE bs=%d]", 1+i/launchesStep%256), start-900, start+60*half-4_000)
			}
			if i%launchesLayer == 0 {
				exportRange(t, fmt.Sprintf("model.layers.%d", i/launchesLayer%30), start-700, start+2*half-5_000)
			}
			// Registered strings are in StringIds.
			t.Insert("textId", texts[i/(launchesLayer/2)%2], "text", nil, "start", start-500, "end", start+half-6_000)
		}
	}
}

func exportRange(t *nsys.Table, text string, start, end int64) {
	t.Insert("text", text, "start", start, "end", end)
}

type kernelName struct{ demangled, short, mangled string }

// kernelNames are two hundred names, the first one of a collective. Those of
// templates are as long as those of CUTLASS.
func kernelNames() []kernelName {
	names := []kernelName{{
		"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
		"_Z40ncclDevKernel_AllReduce_Sum_bf16_RING_LL24ncclDevKernelArgsStorageILm4096EE",
	}}
	for i := 1; i < 200; i++ {
		tile := fmt.Sprintf("cute::tuple<cute::C<%d>, cute::C<%d>, cute::C<64>>", 64<<(i%3), 64<<(i/3%3))
		n := kernelName{short: "device_kernel", mangled: fmt.Sprintf("_ZN7cutlass13device_kernelIN4gemm%dE%sEE", i, strings.Repeat("N4cute1CILi64EEE", 1+i%40))}
		switch i % 4 {
		case 0:
			n.demangled = fmt.Sprintf("void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<%s>>(Params%d)",
				strings.Repeat(tile+", cutlass::bfloat16_t, ", 1+i%24)+"float", i)
		case 1:
			n.short = fmt.Sprintf("nvjet_tst_%dx%d_64x%d_2x1_v_bz_TNT", 64<<(i%3), 64<<(i/3%3), i)
			n.demangled, n.mangled = n.short, n.short
		case 2:
			n.short = "vectorized_elementwise_kernel"
			n.demangled = fmt.Sprintf("void at::native::vectorized_elementwise_kernel<%d, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, %dul>>(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, %dul>)", i, i, i)
		default:
			n.short = fmt.Sprintf("FusedAddRMSNormKernel%d", i)
			n.demangled = fmt.Sprintf("void flashinfer::norm::%s<8u, __nv_bfloat16>(__nv_bfloat16*, __nv_bfloat16*, unsigned int, float)", n.short)
		}
		names = append(names, n)
	}
	return names
}
