package dataset

// Place says which rank, process, and thread a row belongs to; all tables of profiles have these columns. In
// recordings that are walked, such as Nsight Systems exports, pid identifies the process, and process is -1.
type Place struct {
	Host    string `parquet:"host,dict" redact:"host" doc:"host, as far as this input alone says; empty is unknown"`
	Rank    string `parquet:"rank,dict" redact:"own" doc:"rank, as far as this input alone says: TP0 DP1, rank 3; empty is unknown"`
	Process int32  `parquet:"process,dict" doc:"processes.process; -1 if pid identifies the process"`
	Thread  int32  `parquet:"thread,dict" doc:"threads.thread; -1 if tid or stream identifies it"`
	PID     int64  `parquet:"pid,dict" doc:"process ID; -1 is unknown"`
}

// A sliceRow is device work, or a thread's call or range. There is one file for each kind.
type sliceRow struct {
	Start int64 `parquet:"start,delta" unit:"ns" doc:"Unix time on the host's clock, unless processes.absolute is false"`
	Dur   int64 `parquet:"dur" unit:"ns" doc:"duration"`
	Place
	Kind        string `parquet:"kind,dict" redact:"own" doc:"kernel, graph (a CUDA graph as a whole), copy, call, range, other"`
	Name        string `parquet:"name,dict" doc:"name of the kernel, operation, function, or range"`
	Category    string `parquet:"category,dict" doc:"category in the trace; empty for exports"`
	TID         int64  `parquet:"tid,dict" doc:"native thread ID, for calls and ranges"`
	Device      int32  `parquet:"device,dict" doc:"device index within the process, for kernels and copies; -1 is none"`
	Stream      int64  `parquet:"stream,dict" doc:"CUDA stream, for kernels and copies; -1 is none"`
	Correlation int64  `parquet:"correlation,optional,delta" doc:"links a call to what it launched; unique within the capture"`
	Blocks      *int32 `parquet:"blocks,optional" doc:"blocks of the grid of a kernel; null is unknown"`
	OneBlock    *int32 `parquet:"one_block,optional" doc:"threads of a kernel that was launched as a single block; null for others"`
	Bytes       *int64 `parquet:"bytes,optional" unit:"bytes" doc:"size of a copy"`
	From        string `parquet:"memory_from,dict,optional" redact:"own" doc:"kind of memory that a copy reads; only for exports (in traces, name has it)"`
	To          string `parquet:"memory_to,dict,optional" redact:"own" doc:"kind of memory that a copy writes; like memory_from"`
	Result      *int32 `parquet:"result,optional" doc:"return value of a call; null if not recorded"`
	Style       string `parquet:"style,dict,optional" redact:"own" doc:"kind of range: PushPop, StartEnd"`
	Open        bool   `parquet:"never_closed" doc:"a range that was never closed"`
}

// An operatorRow is a thread's work besides calls and ranges. There is one file for each kind.
type operatorRow struct {
	Start int64 `parquet:"start,delta" unit:"ns" doc:"like slices.start"`
	Dur   int64 `parquet:"dur" unit:"ns" doc:"duration"`
	Place
	Kind     string `parquet:"kind,dict" redact:"own" doc:"operator, python, system (a call into the operating system)"`
	Name     string `parquet:"name,dict" doc:"name of the operator or function"`
	Category string `parquet:"category,dict" doc:"like slices.category"`
	TID      int64  `parquet:"tid,dict" doc:"native thread ID"`
	Shapes   string `parquet:"shapes,dict,optional" doc:"shapes of the inputs, as JSON"`
	Types    string `parquet:"types,dict,optional" doc:"types of the inputs, as JSON"`
	Concrete string `parquet:"concrete,dict,optional" doc:"values of non-tensor inputs, as JSON; only for attention operators"`
}

// A stepRow is a batch of a server, or an iteration of a training loop.
type stepRow struct {
	Start int64 `parquet:"start,delta" unit:"ns" doc:"like slices.start"`
	Dur   int64 `parquet:"dur" unit:"ns" doc:"duration"`
	Place
	Name  string `parquet:"name,dict" doc:"text of the annotation"`
	Kind  string `parquet:"kind,dict" redact:"own" doc:"prefill, decode, other"`
	Batch int32  `parquet:"batch" doc:"requests; -1 is unknown"`
	OnGPU bool   `parquet:"on_gpu" doc:"the profiler's copy of the annotation on the GPU"`
}

// A collectiveRow is a communication kernel, or the call that asked for one.
type collectiveRow struct {
	Start int64 `parquet:"start,delta" unit:"ns" doc:"like slices.start"`
	Dur   int64 `parquet:"dur" unit:"ns" doc:"duration"`
	Place
	Name        string `parquet:"name,dict" doc:"name of the kernel or call"`
	OnGPU       bool   `parquet:"on_gpu" doc:"a kernel"`
	CommsID     uint64 `parquet:"comms_id,optional" doc:"identifies the communicator"`
	Seq         int64  `parquet:"seq,delta" doc:"sequence number within the communicator; -1 is unknown"`
	Op          string `parquet:"op,dict,optional" doc:"allreduce, ..."`
	Group       string `parquet:"group_name,dict,optional" doc:"name of the process group"`
	Ranks       string `parquet:"group_ranks,dict,optional" doc:"ranks of the process group"`
	Dtype       string `parquet:"dtype,dict,optional" doc:"element type"`
	In          int64  `parquet:"elements_in" doc:"input elements; -1 is unknown"`
	Out         int64  `parquet:"elements_out" doc:"output elements; -1 is unknown"`
	GroupSize   int32  `parquet:"group_size" doc:"number of ranks; -1 is unknown"`
	Splits      string `parquet:"splits,dict,optional" doc:"split sizes of an all-to-all"`
	Member      int32  `parquet:"member,optional" doc:"number of the rank in its group, plus one, as its tasks show; null is unknown"`
	Awaited     int32  `parquet:"awaited,optional" doc:"the same of the rank that it waited for longest"`
	AwaitedNs   int64  `parquet:"awaited_ns,optional" unit:"ns" doc:"how long it waited for that rank"`
	AtLeast     int32  `parquet:"at_least,optional" doc:"number of ranks in the group at least, as its tasks show; null is unknown"`
	Correlation int64  `parquet:"correlation,optional" doc:"like slices.correlation"`
	Step        string `parquet:"step,dict" redact:"own" doc:"kind of step that launched it: prefill, decode, other"`
	Held        bool   `parquet:"held" doc:"a collective of hosts, as those of gloo, until the end of which the thread that asked for it waited"`
}

// An instantRow is an instant that a profiler recorded.
type instantRow struct {
	Time int64 `parquet:"time,delta" unit:"ns" doc:"like slices.start"`
	Place
	Name       string `parquet:"name,dict" doc:"event name, such as [memory]"`
	Category   string `parquet:"category,dict" doc:"category in the trace"`
	DeviceType *int64 `parquet:"device_type,optional" doc:"for memory events: 0 is the host"`
	Device     *int64 `parquet:"device,optional" doc:"device index, for memory events"`
	Allocated  *int64 `parquet:"allocated,optional" unit:"bytes" doc:"device memory held by tensors"`
	Reserved   *int64 `parquet:"reserved,optional" unit:"bytes" doc:"device memory held by the allocator"`
}

// A counterRow is the value of a counter at an instant.
type counterRow struct {
	Time int64 `parquet:"time,delta" unit:"ns" doc:"like slices.start"`
	Place
	Source string  `parquet:"source,dict,optional" doc:"what is measured: GPU 0, a network card"`
	Name   string  `parquet:"name,dict,optional" doc:"counter name; for traces, see its thread"`
	Unit   string  `parquet:"unit,dict,optional" doc:"%, bytes"`
	Kind   string  `parquet:"kind,dict" redact:"own" doc:"memory, device, network; trace: a counter of a trace"`
	Value  float64 `parquet:"value" doc:"value, in unit"`
}

// A stackRow is a call stack: its innermost function, and the stack of the caller.
type stackRow struct {
	Stack    int32  `parquet:"stack,delta" doc:"number in the file, from 1"`
	Caller   int32  `parquet:"caller" doc:"stack of the caller, always a smaller number; 0 is none"`
	Function string `parquet:"function_name,dict" doc:"name"`
	Module   string `parquet:"module,dict,optional" doc:"path of the program or library"`
	Kind     string `parquet:"kind,dict" redact:"own" doc:"sample or backtrace: which rows use it"`
}

// A sampleRow is a sample of what a thread ran, the backtrace of a call, or a period in which a thread ran
// on a core.
type sampleRow struct {
	Start int64 `parquet:"start,delta" unit:"ns" doc:"like slices.start"`
	Dur   int64 `parquet:"dur" unit:"ns" doc:"duration; 0 for samples"`
	Place
	Kind        string `parquet:"kind,dict" redact:"own" doc:"sample, backtrace, run"`
	Name        string `parquet:"name,dict,optional" doc:"innermost function, or the call"`
	TID         int64  `parquet:"tid,dict" doc:"native thread ID"`
	CPU         int32  `parquet:"cpu,dict" doc:"CPU core; -1 is unknown"`
	Stack       int32  `parquet:"stack,optional" doc:"stacks.stack, of the same kind"`
	Correlation int64  `parquet:"correlation,optional" doc:"like slices.correlation"`
}
