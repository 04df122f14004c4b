package golden

// NsysTruth is what the Nsight Systems exports of a run hold.
type NsysTruth struct {
	// Secret is in all files, where no reader may pass it on.
	Secret string     `json:"secret,omitempty"`
	Files  []NsysFile `json:"files"`
}

// NsysFile is an export: all schedulers of a host.
type NsysFile struct {
	Name   string `json:"name"`
	Host   string `json:"host"`
	Schema int    `json:"schema"` // the year of its generation
	// Piece counts from 1 to Pieces, which is how many files the host has.
	Piece  int `json:"piece"`
	Pieces int `json:"pieces"`
	// GraphTrace is graph or node.
	GraphTrace string `json:"graph_trace"`
	// SessionStartNs is the start of the session as the file tells, by the clock of
	// the host, left out where it does not; DurationNs its length by that clock.
	SessionStartNs int64 `json:"session_start_ns,omitempty"`
	DurationNs     int64 `json:"duration_ns"`
	// StartNs is the same start by that clock in all files.
	StartNs int64 `json:"start_ns"`
	// ClockOffsetNs is the clock of the host minus true time at the start.
	ClockOffsetNs int64 `json:"clock_offset_ns"`
	// ShiftNs is what was added to the times in the file.
	ShiftNs   int64         `json:"shift_ns,omitempty"`
	Processes []NsysProcess `json:"processes"`
	Metrics   []NsysMetric  `json:"metrics,omitempty"`
	Messages  []NsysMessage `json:"messages,omitempty"` // warnings and errors
}

// NsysMessage is what the profiler says: 1 is information, 2 a warning, 3 an error.
type NsysMessage struct {
	Severity int    `json:"severity"`
	Text     string `json:"text"`
}

// NsysMetric is a sampled metric of a GPU.
type NsysMetric struct {
	GPU  int    `json:"gpu"`
	Name string `json:"name"`
	N    int    `json:"n"`
	Sum  int64  `json:"sum"`
}

// NsysProcess is a scheduler in an export. Kernels are those in the file, of which
// NodeKernels were in graphs, and Orphans have no call in the file.
type NsysProcess struct {
	PID  int    `json:"pid"`
	Rank string `json:"rank"` // TP0-PP0-DP1
	// Device is the ordinal of the GPU as the process counts, GPU that of the host.
	Device int `json:"device"`
	GPU    int `json:"gpu"`
	// Comm is the process in NCCL, if the file tells.
	Comm *NsysComm `json:"comm,omitempty"`

	Kernels     int `json:"kernels"`
	NodeKernels int `json:"node_kernels"`
	Orphans     int `json:"orphans"`
	GraphRuns   int `json:"graph_runs"`
	Memcpys     int `json:"memcpys"`
	Calls       int `json:"calls"` // of CUDA
	Syncs       int `json:"syncs"`
	// Ranges are all of NVTX, Open those that are not closed in the file.
	Ranges       int   `json:"ranges"`
	Open         int   `json:"open"`
	OSCalls      int   `json:"os_calls"`
	Scheds       int   `json:"scheds"`
	MemoryEvents int   `json:"memory_events"`
	CopiedBytes  int64 `json:"copied_bytes"`
	// MessageBytes is the sum of what NCCL's ranges say that they send, if the file
	// tells.
	MessageBytes uint64 `json:"message_bytes,omitempty"`
	GraphRunNs   int64  `json:"graph_run_ns"`

	// By name, in the order of names: kernels by their demangled name, calls with
	// the version in their name, and closed ranges by their text.
	KernelNs []NsysSum `json:"kernel_ns"`
	CallNs   []NsysSum `json:"call_ns"`
	RangeNs  []NsysSum `json:"range_ns"`
	// Steps are the step[...] ranges that the file has the beginning of.
	Steps []NsysStep `json:"steps"`
}

// NsysComm is the part of a process in a communicator.
type NsysComm struct {
	ID   uint64 `json:"id"`
	Rank int    `json:"rank"`
	Size int    `json:"size"`
}

// NsysSum is the sum of durations of one name.
type NsysSum struct {
	Name  string `json:"name"`
	N     int    `json:"n"`
	SumNs int64  `json:"sum_ns"`
}

// NsysStep is all step ranges of one name, and what the calls in them launched.
type NsysStep struct {
	Name    string `json:"name"`
	N       int    `json:"n"`
	Kernels int    `json:"kernels"`
	// SpanNs is the sum over ranges from the start of the first kernel to the end of
	// the last; GPUSpanNs is the same of kernels, runs of graphs and copies.
	SpanNs    int64 `json:"span_ns"`
	GPUSpanNs int64 `json:"gpu_span_ns"`
}
