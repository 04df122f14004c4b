package nsys

// Truth is the content of the Nsight Systems exports of a run.
type Truth struct {
	// Secret is in all files; no reader may pass it on.
	Secret string      `json:"secret,omitempty"`
	Files  []FileTruth `json:"files"`
}

// FileTruth is an export: all schedulers of a host.
type FileTruth struct {
	Name   string `json:"name"`
	Host   string `json:"host"`
	Schema int    `json:"schema"` // the year of its generation
	// Piece counts from 1 to Pieces, the number of files of the host.
	Piece  int `json:"piece"`
	Pieces int `json:"pieces"`
	// GraphTrace is graph or node.
	GraphTrace string `json:"graph_trace"`
	// SessionStartNs is the start of the session according to the file, on the clock of the host, omitted if the file does not
	// have it; DurationNs is its length on that clock.
	SessionStartNs int64 `json:"session_start_ns,omitempty"`
	DurationNs     int64 `json:"duration_ns"`
	// StartNs is the same start on that clock, for all files.
	StartNs int64 `json:"start_ns"`
	// ClockOffsetNs is the clock of the host minus true time at the start.
	ClockOffsetNs int64 `json:"clock_offset_ns"`
	// ShiftNs is the offset added to the times in the file.
	ShiftNs   int64          `json:"shift_ns,omitempty"`
	Processes []ProcessTruth `json:"processes"`
	Metrics   []MetricTruth  `json:"metrics,omitempty"`
	Messages  []Message      `json:"messages,omitempty"` // warnings and errors
}

// Message is a diagnostic of the profiler: 1 is information, 2 a warning, 3 an error.
type Message struct {
	Severity int    `json:"severity"`
	Text     string `json:"text"`
}

// MetricTruth is a sampled metric of a GPU.
type MetricTruth struct {
	GPU  int    `json:"gpu"`
	Name string `json:"name"`
	N    int    `json:"n"`
	Sum  int64  `json:"sum"`
}

// ProcessTruth is a scheduler in an export. Kernels is the number of kernels in the file, NodeKernels of those in graphs,
// and Orphans of those without a call in the file.
type ProcessTruth struct {
	PID  int    `json:"pid"`
	Rank string `json:"rank"` // TP0-PP0-DP1
	// Device is the ordinal of the GPU in the process's numbering, GPU that on the host.
	Device int `json:"device"`
	GPU    int `json:"gpu"`
	// Comm is the process in NCCL, if the file has it.
	Comm *CommTruth `json:"comm,omitempty"`

	Kernels     int `json:"kernels"`
	NodeKernels int `json:"node_kernels"`
	Orphans     int `json:"orphans"`
	GraphRuns   int `json:"graph_runs"`
	Memcpys     int `json:"memcpys"`
	Calls       int `json:"calls"` // of CUDA
	Syncs       int `json:"syncs"`
	// Ranges is the number of all NVTX ranges, Open of those that are not closed in the file.
	Ranges       int   `json:"ranges"`
	Open         int   `json:"open"`
	OSCalls      int   `json:"os_calls"`
	Scheds       int   `json:"scheds"`
	MemoryEvents int   `json:"memory_events"`
	CopiedBytes  int64 `json:"copied_bytes"`
	// MessageBytes is the sum of the message sizes in NCCL's ranges, if the file has them.
	MessageBytes uint64 `json:"message_bytes,omitempty"`
	GraphRunNs   int64  `json:"graph_run_ns"`

	// By name, in the order of names: kernels by their demangled name, calls with the version in their name, and closed ranges
	// by their text.
	KernelNs []SumTruth `json:"kernel_ns"`
	CallNs   []SumTruth `json:"call_ns"`
	RangeNs  []SumTruth `json:"range_ns"`
	// Steps are the step[...] ranges whose beginning is in the file.
	Steps []StepTruth `json:"steps"`
}

// CommTruth is a process's membership in a communicator.
type CommTruth struct {
	ID   uint64 `json:"id"`
	Rank int    `json:"rank"`
	Size int    `json:"size"`
}

// SumTruth is the sum of durations of one name.
type SumTruth struct {
	Name  string `json:"name"`
	N     int    `json:"n"`
	SumNs int64  `json:"sum_ns"`
}

// StepTruth is all step ranges of one name, and the work launched by the calls in them.
type StepTruth struct {
	Name    string `json:"name"`
	N       int    `json:"n"`
	Kernels int    `json:"kernels"`
	// SpanNs is the sum over ranges from the start of the first kernel to the end of the last; GPUSpanNs is the same for
	// kernels, runs of graphs, and copies.
	SpanNs    int64 `json:"span_ns"`
	GPUSpanNs int64 `json:"gpu_span_ns"`
}
