package nsys

import (
	"strings"

	"github.com/sgtrace/sgtrace/golden/torch"
)

// callNames are the names of CUDA's calls in exports, with the version of CUDA in which their signature changed.
var callNames = [...]string{
	torch.APILaunch:       "cudaLaunchKernel_v7000",
	torch.APILaunchEx:     "cudaLaunchKernelExC_v11060",
	torch.APIDriverLaunch: "cuLaunchKernelEx",
	torch.APIGraphLaunch:  "cudaGraphLaunch_v10000",
	torch.APIMemcpy:       "cudaMemcpyAsync_v3020",
	torch.APIEventRecord:  "cudaEventRecord_v3020",
	torch.APIStreamWait:   "cudaStreamWaitEvent_v3020",
	torch.APIStreamSync:   "cudaStreamSynchronize_v3020",
	torch.APIMalloc:       "cudaMalloc_v3020",
	torch.APIModuleLoad:   "cuModuleLoadData",
}

// launchShape is the shape of a kernel launch, in one dimension.
type launchShape struct{ registers, shared, grid, block, cluster int64 }

// launchShapes has the numbers that PyTorch's traces have as text.
var launchShapes = map[string]launchShape{
	torch.SmallKernel: {40, 16448, 32, 1024, 0},
	torch.GemmKernel:  {168, 213504, 132, 384, 2},
	torch.NCCLKernel:  {96, 0, 24, 544, 0},
	torch.WideKernel:  {32, 0, 512, 256, 0},
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

	copyToDevice   = 1
	copyToHost     = 2
	pageableMemory = 0
	pinnedMemory   = 1
	deviceMemory   = 2

	syncStreamWait = 2
	syncStream     = 3
)

// NCCL's payloads: ids of their layouts, and types of fields.
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

// payloadField is a field of an NCCL payload.
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
