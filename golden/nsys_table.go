package golden

import "strings"

// nsysCalls are the names of CUDA's calls in exports, with the version of CUDA in
// which their signature changed.
var nsysCalls = [...]string{
	apiLaunch:       "cudaLaunchKernel_v7000",
	apiLaunchEx:     "cudaLaunchKernelExC_v11060",
	apiDriverLaunch: "cuLaunchKernelEx",
	apiGraphLaunch:  "cudaGraphLaunch_v10000",
	apiMemcpy:       "cudaMemcpyAsync_v3020",
	apiEventRecord:  "cudaEventRecord_v3020",
	apiStreamWait:   "cudaStreamWaitEvent_v3020",
	apiStreamSync:   "cudaStreamSynchronize_v3020",
}

// launchShape is how a kernel is launched, in one dimension.
type launchShape struct{ registers, shared, grid, block, cluster int64 }

// launchShapes has in numbers what PyTorch's traces have as text.
var launchShapes = map[string]launchShape{
	smallKernel: {40, 16448, 32, 1024, 0},
	gemmKernel:  {168, 213504, 132, 384, 2},
	ncclKernel:  {96, 0, 24, 544, 0},
	wideKernel:  {32, 0, 512, 256, 0},
}

// shortName returns the bare name of a kernel, without namespaces, template and
// call parameters.
func shortName(demangled string) string {
	name := strings.ReplaceAll(demangled, "(anonymous namespace)::", "")
	if i := strings.IndexAny(name, "<("); i >= 0 {
		name = name[:i]
	}
	name = name[strings.LastIndexByte(name, ' ')+1:]
	return name[strings.LastIndexByte(name, ':')+1:]
}

// Numbers of CUPTI and NVTX in exports.
const (
	classRuntime   = 0
	classDriver    = 1
	classOS        = 27
	classGraphNode = 77

	eventMark     = 34
	eventPushPop  = 59
	eventStartEnd = 60
	eventDomain   = 75

	copyToDevice = 1
	copyToHost   = 2
	pinnedMemory = 1
	deviceMemory = 2

	syncStreamWait = 2
	syncStream     = 3
)

// Payloads of NCCL: ids of their layouts, and types of fields.
const (
	ncclDomainID   = 1
	ncclInitID     = 16777218
	ncclSizeID     = 16777220
	payloadInt32   = 5
	payloadUint64  = 18
	payloadSize    = 22
	payloadSimple  = 1 // a struct of a fixed size
	ncclInitBytes  = 24
	ncclSizeBytes  = 16
	payloadHeading = 32 // bytes before a binary payload
)

// payloadField is a field of a payload of NCCL.
type payloadField struct {
	name         string
	kind, offset int
}

// payloadLayouts are the payloads that NCCL registers, in each process.
var payloadLayouts = []struct {
	id, size int
	fields   []payloadField
}{
	{ncclInitID, ncclInitBytes, []payloadField{
		{"NCCL communicator ID", payloadUint64, 0}, {"No. of ranks", payloadInt32, 8},
		{"Rank", payloadInt32, 12}, {"CUDA device", payloadInt32, 16},
	}},
	{ncclSizeID, ncclSizeBytes, []payloadField{
		{"NCCL communicator ID", payloadUint64, 0}, {"Message size [bytes]", payloadSize, 8},
	}},
}

// Ids of the CUDA graph that a process replays.
const (
	graphID     = 21
	graphExecID = 23
)
