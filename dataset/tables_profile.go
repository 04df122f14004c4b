package dataset

// Place is whose a row is; columns of all tables of what profilers recorded. Of recordings
// that are walked, as those of Nsight Systems, pid tells the process, and process is -1.
type Place struct {
	Host    string `parquet:"host,dict" redact:"host" doc:"by what the input itself says; empty is unknown"`
	Rank    string `parquet:"rank,dict" redact:"own" doc:"by what the input itself says: TP0 DP1, rank 3; empty is unknown"`
	Process int32  `parquet:"process,dict" doc:"processes.process; -1 where pid tells it"`
	Thread  int32  `parquet:"thread,dict" doc:"threads.thread; -1 where tid or stream tells it"`
	PID     int64  `parquet:"pid,dict" doc:"-1 is unknown"`
}

// A sliceRow is what a device did, or what a thread asked of it. There is one file for each kind.
type sliceRow struct {
	Start int64 `parquet:"start,delta" unit:"ns" doc:"on the clock of the host: Unix time, unless processes.absolute is false"`
	Dur   int64 `parquet:"dur" unit:"ns" doc:"length"`
	Place
	Kind        string `parquet:"kind,dict" redact:"own" doc:"kernel, graph (a CUDA graph as a whole), copy, call, range, other"`
	Name        string `parquet:"name,dict" doc:"of the kernel, the operation, the function, the range"`
	Category    string `parquet:"category,dict" doc:"as the profiler has it; empty of exports"`
	TID         int64  `parquet:"tid,dict" doc:"thread, of calls and ranges"`
	Device      int32  `parquet:"device,dict" doc:"as the process counts, of kernels and copies; -1 is none"`
	Stream      int64  `parquet:"stream,dict" doc:"CUDA stream, of kernels and copies; -1 is none"`
	Correlation int64  `parquet:"correlation,optional,delta" doc:"of a call and what it launched, equal within the capture"`
	Bytes       *int64 `parquet:"bytes,optional" unit:"bytes" doc:"of a copy"`
	From        string `parquet:"memory_from,dict,optional" redact:"own" doc:"kind of memory that a copy reads; only of exports, of traces the name tells"`
	To          string `parquet:"memory_to,dict,optional" redact:"own" doc:"kind of memory that a copy writes, as memory_from"`
	Result      *int32 `parquet:"result,optional" doc:"what a call returned; null is not recorded"`
	Style       string `parquet:"style,dict,optional" redact:"own" doc:"of a range: PushPop, StartEnd"`
	Open        bool   `parquet:"never_closed" doc:"a range that was never closed"`
}

// An operatorRow is what a thread did beside calls and ranges. There is one file for each kind.
type operatorRow struct {
	Start int64 `parquet:"start,delta" unit:"ns" doc:"as slices.start"`
	Dur   int64 `parquet:"dur" unit:"ns" doc:"length"`
	Place
	Kind     string `parquet:"kind,dict" redact:"own" doc:"operator, python, system (a call into the operating system)"`
	Name     string `parquet:"name,dict" doc:"of the operator or function"`
	Category string `parquet:"category,dict" doc:"as slices.category"`
	TID      int64  `parquet:"tid,dict" doc:"thread"`
	Shapes   string `parquet:"shapes,dict,optional" doc:"of the inputs, as JSON"`
	Types    string `parquet:"types,dict,optional" doc:"of the inputs, as JSON"`
	Concrete string `parquet:"concrete,dict,optional" doc:"values of inputs that are no tensors, as JSON; only of operators that compute attention"`
}

// A stepRow is a batch of a server, or an iteration of a training loop.
type stepRow struct {
	Start int64 `parquet:"start,delta" unit:"ns" doc:"as slices.start"`
	Dur   int64 `parquet:"dur" unit:"ns" doc:"length"`
	Place
	Name  string `parquet:"name,dict" doc:"of the annotation"`
	Kind  string `parquet:"kind,dict" redact:"own" doc:"prefill, decode, other"`
	Batch int32  `parquet:"batch" doc:"requests; -1 is unknown"`
	OnGPU bool   `parquet:"on_gpu" doc:"a copy of the annotation over its kernels"`
}

// A collectiveRow is a communication kernel, or the call that asked for one.
type collectiveRow struct {
	Start int64 `parquet:"start,delta" unit:"ns" doc:"as slices.start"`
	Dur   int64 `parquet:"dur" unit:"ns" doc:"length"`
	Place
	Name        string `parquet:"name,dict" doc:"of the kernel or call"`
	OnGPU       bool   `parquet:"on_gpu" doc:"a kernel"`
	CommsID     uint64 `parquet:"comms_id,optional" doc:"identifies the communicator"`
	Seq         int64  `parquet:"seq,delta" doc:"number in the communicator; -1 is unknown"`
	Op          string `parquet:"op,dict,optional" doc:"allreduce, ..."`
	Group       string `parquet:"group_name,dict,optional" doc:"name of the process group"`
	Ranks       string `parquet:"group_ranks,dict,optional" doc:"of the process group"`
	Dtype       string `parquet:"dtype,dict,optional" doc:"of the elements"`
	In          int64  `parquet:"elements_in" doc:"-1 is unknown"`
	Out         int64  `parquet:"elements_out" doc:"-1 is unknown"`
	GroupSize   int32  `parquet:"group_size" doc:"ranks; -1 is unknown"`
	Splits      string `parquet:"splits,dict,optional" doc:"what an all-to-all sends to each rank"`
	Correlation int64  `parquet:"correlation,optional" doc:"as slices.correlation"`
	Step        string `parquet:"step,dict" redact:"own" doc:"kind of the step that it was launched in: prefill, decode, other"`
}

// An instantRow is a moment that a profiler noted.
type instantRow struct {
	Time int64 `parquet:"time,delta" unit:"ns" doc:"as slices.start"`
	Place
	Name       string `parquet:"name,dict" doc:"of the event: [memory]"`
	Category   string `parquet:"category,dict" doc:"as the profiler has it"`
	DeviceType *int64 `parquet:"device_type,optional" doc:"of memory: 0 is the host"`
	Device     *int64 `parquet:"device,optional" doc:"of memory"`
	Allocated  *int64 `parquet:"allocated,optional" unit:"bytes" doc:"what tensors have of the device"`
	Reserved   *int64 `parquet:"reserved,optional" unit:"bytes" doc:"what the allocator has of the device"`
}

// A counterRow is the value of a counter at a moment.
type counterRow struct {
	Time int64 `parquet:"time,delta" unit:"ns" doc:"as slices.start"`
	Place
	Source string  `parquet:"source,dict,optional" doc:"what it is about: GPU 0, a network card"`
	Name   string  `parquet:"name,dict,optional" doc:"of the counter; of a trace its thread tells"`
	Unit   string  `parquet:"unit,dict,optional" doc:"%, bytes"`
	Kind   string  `parquet:"kind,dict" redact:"own" doc:"memory, device, network; trace: a counter of a trace"`
	Value  float64 `parquet:"value" doc:"in unit"`
}

// A stackRow is a stack of functions: its innermost function, and what called it.
type stackRow struct {
	Stack    int32  `parquet:"stack,delta" doc:"number in the file, from 1"`
	Caller   int32  `parquet:"caller" doc:"stack of the caller, a smaller number; 0 is none"`
	Function string `parquet:"function_name,dict" doc:"name"`
	Module   string `parquet:"module,dict,optional" doc:"path of the program or library"`
	Kind     string `parquet:"kind,dict" redact:"own" doc:"sample or backtrace: whose stacks they are"`
}

// A sampleRow is what a thread ran at a moment, the stack of a call, or a time for which a
// thread had a core.
type sampleRow struct {
	Start int64 `parquet:"start,delta" unit:"ns" doc:"as slices.start"`
	Dur   int64 `parquet:"dur" unit:"ns" doc:"length; 0 of samples"`
	Place
	Kind        string `parquet:"kind,dict" redact:"own" doc:"sample, backtrace, run"`
	Name        string `parquet:"name,dict,optional" doc:"of the innermost function, or of the call"`
	TID         int64  `parquet:"tid,dict" doc:"thread"`
	CPU         int32  `parquet:"cpu,dict" doc:"-1 is unknown"`
	Stack       int32  `parquet:"stack,optional" doc:"stacks.stack, of the same kind"`
	Correlation int64  `parquet:"correlation,optional" doc:"as slices.correlation"`
}
