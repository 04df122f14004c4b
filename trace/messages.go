package trace

// What several messages advise.
const (
	copyAgain    = "copy the file again; if the original is damaged too, the count says how much is lost"
	exportAgain  = "copy the file again, or run `nsys export` again on the report"
	nothing      = "nothing"
	tellProject  = "nothing; if the producer is a current one, tell this project"
	labelRanks   = "label files of other ranks or hosts: `node1/TP3=FILE`"
	rotatedFiles = "add the rotated files before and after; raise `OTEL_BSP_MAX_QUEUE_SIZE` where spans were dropped"
	clockOfHost  = "check the clock of the host that wrote it"
)

// Inputs as a whole.
var (
	InputDamaged         = message("input-damaged", DataLoss, "reading stopped here: {error}; everything before is used", copyAgain)
	InputUnusable        = message("input-unusable", Error, "{why the file cannot be read}", "as the message says; `sgtrace inspect` shows what a file is; other inputs are used")
	InputWithoutRequests = message("input-without-requests", Info, "is of a profiler and has no requests; left out here", "give it to `merge` or `report --by-rank`, which read profiles, too")
	InputOtherKind       = message("input-other-kind", Notice, "was given as {format}, and is {format}: read as what it is", "nothing, if the file belongs there; else fix the glob: `--torch`, `--nsys` and `--otel` say what is expected")
	InputSkipped         = message("input-skipped", Notice, "{why the file is not data that this command reads}", "nothing, unless the file should be read: `sgtrace inspect` shows what it is; other inputs are used")
	MemorySpilled        = message("memory-spilled", Notice, "{size} had no room within {size} of memory and went to a temporary file, which takes longer", "nothing, or allow more with `--max-memory`")
	SecretLeftOut        = message("secret-left-out", Info, "{kind of value} {name%q} may hold a prompt or credentials; left out (--keep-secrets keeps it)", "nothing; `--keep-secrets` keeps prompts, credentials and environments if the output stays where it is")
)

// OTLP.
var (
	OTLPTruncated     = message("otlp-truncated", DataLoss, "the document ends {where}; everything before is used", "stop the server or the Collector before you copy; the missing tail may be in the next rotated file")
	OTLPSyntax        = message("otlp-syntax", DataLoss, "{what is wrong}; skipped {n} bytes to the next record", copyAgain)
	OTLPFrame         = message("otlp-frame", DataLoss, "damaged frame: {what is wrong}", copyAgain)
	OTLPProtobuf      = message("otlp-protobuf", DataLoss, "a message is damaged; what comes before the damage is used", copyAgain)
	OTLPInvalidSpan   = message("otlp-invalid-span", DataLoss, "a span is left out: {what is wrong}", "check what wrote the span: a time or an id is missing or impossible")
	OTLPLostValue     = message("otlp-lost-value", DataLoss, "an attribute or event that cannot be represented is left out", "nothing, unless you need the attribute")
	OTLPOddValue      = message("otlp-odd-value", Notice, "an attribute is not of the type that it claims to be; kept as text", nothing)
	OTLPUnknownKey    = message("otlp-unknown-key", Notice, "key {name%q} is not one of OTLP; skipped", tellProject)
	OTLPDuplicateSpan = message("otlp-duplicate-span", Notice, "span {id%016x} {name%q} was exported more than once; counted once", "nothing: exporters send again what was not confirmed; or you gave a file twice")
	OTLPIDCollision   = message("otlp-id-collision", Notice, "span {id%016x} {name%q} has the id of another span of its trace; both are kept, children go to the first", "nothing, unless you gave dumps of several deployments at once")
	OTLPCycle         = message("otlp-cycle", DataLoss, "span {id%016x} {name%q} is its own ancestor; taken as a root", "check what wrote the spans, or whether dumps were spliced")
	OTLPOtherSignals  = message("otlp-other-signals", Info, "messages with logs, metrics or profiles were skipped", "nothing: logs and metrics are of no use here")
)

// Requests.
var (
	RequestRootMissing    = message("request-root-missing", DataLoss, "thread span {name%q} belongs to a request whose own span is not in the dump; shown without it", "add the rotated files before and after, if there are any; SGLang never exports the root of a request that failed before it was queued")
	RequestThreadsMissing = message("request-threads-missing", DataLoss, "request span {name%q} has no thread spans below it; the file lacks them or its processes do not trace", rotatedFiles)
	ThreadSpanMissing     = message("thread-span-missing", DataLoss, "stage {name%q} lies in a span that is not in the dump; its rank is known only if its process is", rotatedFiles)
	LinkTargetMissing     = message("link-target-missing", DataLoss, "stage {name%q} follows a span that is not in the dump", rotatedFiles)
	RIDCollision          = message("rid-collision", Notice, "{n} requests have the rid {rid%q}; they are told apart by their trace", "choose rids without an underscore, where SGLang cuts; until then use the full id or the trace id")
	RoomCollision         = message("room-collision", Notice, "several requests have the bootstrap room {room}; their halves are joined only within a trace", "nothing, unless you gave dumps of several deployments at once: give them one by one")
	NoRequest             = message("no-request", Notice, "span {name%q} belongs to no request; the thread view has it", "nothing; if these are requests of an engine, tell this project")
	TimeImpossible        = message("time-impossible", DataLoss, "span {name%q} {ends before it starts, or lasts more than a month}; its duration is left out", clockOfHost+"; where it is one span of many, a bit of the file has flipped: copy it again")
)

// PyTorch traces and other Chrome JSON.
var (
	TraceTruncated        = message("trace-truncated", DataLoss, "the file ends {where}; everything before is used", "let the profiler finish before the process ends; copy the file again")
	TraceSyntax           = message("trace-syntax", DataLoss, "{what is wrong}; skipped {n} bytes to what comes next", copyAgain)
	TraceClockZero        = message("trace-clock-zero", DataLoss, "an event is at time 0, which is what the profiler makes of a clock that failed; left out", "nothing; newer drivers and versions of PyTorch do better")
	TraceParts            = message("trace-parts", Notice, "pids are of more than {n} ranks in one file; taken as processes of one", "merge the files of the ranks instead, with `sgtrace merge`")
	TraceNoBase           = message("trace-no-base", Notice, "times are relative, and the file does not say to what", "nothing where ranks share collectives, which place it; else `--offset HOST=...`; PyTorch says it since 2.4")
	TraceNoTime           = message("trace-no-time", DataLoss, "an event has no time, or none that is possible; left out", tellProject)
	TraceNoPhase          = message("trace-no-phase", DataLoss, "an event does not say of what phase it is; left out", tellProject)
	TraceUnknownPhase     = message("trace-unknown-phase", Notice, "an event is of the phase {phase%q}, which has no place on a timeline; left out", nothing)
	TraceNoSuchPhase      = message("trace-no-such-phase", DataLoss, "an event is of the phase {phase%q}, which the format does not have; left out", copyAgain)
	TraceNotAnEvent       = message("trace-not-an-event", Notice, "a value that is no event stands among events; skipped", nothing)
	TraceHeader           = message("trace-header", Notice, "{key} is not as it should be; used in part: {error}", "nothing; you may have to give ranks by labels")
	TraceHeaderLong       = message("trace-header-long", DataLoss, "there is more beside the events than any profiler writes; the rest of it is left out", "check what wrote the file: it may not be a profiler's trace")
	TraceEarlyEnd         = message("trace-early-end", Notice, "events follow behind the end of their list; read as if it went on", nothing)
	OwnDrawing            = message("own-drawing", Notice, "this program drew it, of requests: what they were is in the dump that it was made of", "give reports the OTLP dump")
	OwnRowsRepeated       = message("own-rows-repeated", Notice, "a row of {name%q} repeats those of a rank; left out", nothing)
	TraceOddName          = message("trace-odd-name", Notice, "a name has control characters or is not UTF-8; kept as it is", nothing)
	TraceComma            = message("trace-comma", Notice, "a comma is missing, or there is one too many; read as if it were right", nothing)
	TraceMissingValue     = message("trace-missing-value", Notice, "a key has no value; left out", nothing)
	TraceBareWord         = message("trace-bare-word", Notice, "a value is no JSON, such as inf or N/A; kept as text", nothing)
	TraceOpenList         = message("trace-open-list", Notice, "a list is not closed; read as if it were", nothing)
	TraceUnescapedQuote   = message("trace-unescaped-quote", Notice, "a string has quotes in it that are not escaped; read up to the quote that ends it", "nothing; PyTorch's profiler escapes names since July 2026")
	TraceCounterValue     = message("trace-counter-value", Notice, "a counter has a value that is no number; left out", nothing)
	TraceNegativeDuration = message("trace-negative-duration", Notice, "an event ends before it starts; taken as having no duration", nothing)
	TraceOpenSlice        = message("trace-open-slice", Notice, "a slice has no end; drawn up to the last event of the file", "nothing: it was open when the recording stopped")
	TraceUnmatchedEnd     = message("trace-unmatched-end", DataLoss, "an event ends a slice that did not begin in this file; left out", "nothing: it began before the recording did")
)

// Nsight Systems.
var (
	NsysTruncated       = message("nsys-truncated", DataLoss, "the file is cut off after {n} of {n} bytes: rows in the missing part are lost; copy it again, or run nsys export again", exportAgain)
	NsysChanged         = message("nsys-changed", DataLoss, "a program wrote to the file while it was read: run this again when nsys export has ended", "wait until the program that writes the file has ended, and run again")
	NsysTablesDamaged   = message("nsys-tables-damaged", DataLoss, "the list of tables is damaged, so that some may be missing: copy the file again, or run nsys export again", exportAgain)
	NsysTableDamaged    = message("nsys-table-damaged", DataLoss, "the file is {damaged or cut off}: {what is lost}; copy the file again, or run nsys export again ({error})", exportAgain)
	NsysTableUnreadable = message("nsys-table-unreadable", DataLoss, "the table cannot be read: {error}", exportAgain)
	NsysColumnMissing   = message("nsys-column-missing", DataLoss, "the table has no column {name%q} and is left out: run nsys export again", "run `nsys export` again with a newer nsys; if it is a new one, tell this project")
	NsysNameMissing     = message("nsys-name-missing", DataLoss, "a name is not in StringIds (id {id}): the export is incomplete or damaged; run nsys export again", exportAgain)
	NsysExported        = message("nsys-exported", Notice, "is a report, of which {command} made a temporary export", "nothing; export it yourself to read it again without waiting for nsys")
	NsysNoNames         = message("nsys-no-names", DataLoss, "the export has no table StringIds, so that kernels, calls and threads have no names", "export again without `--tables`, or with `StringIds` among them")
	NsysNVTXKind        = message("nsys-nvtx-kind", DataLoss, "NVTX events of the unknown kind {n} are left out: please report this file's version", tellProject)
	NsysPayload         = message("nsys-payload", DataLoss, "a payload of an NVTX event is no JSON object and is left out: run nsys export again", tellProject)
	NsysTime            = message("nsys-time", DataLoss, "a row from {from%d} to {to%d} ns cannot be right and is left out: the file may be damaged", exportAgain)
	NsysBackwards       = message("nsys-backwards", Notice, "a row ends before it starts; it is taken to last 0 ns", nothing)
	NsysSessionStart    = message("nsys-session-start", DataLoss, "the session is said to have started {n%d} ns after 1970, which cannot be: run nsys export again", exportAgain)
	NsysNoSessionStart  = message("nsys-no-session-start", Notice, "the export does not tell when its session started: times count from there, and its clock must be given or matched", "export with a version of nsys from 2022 on, or give the clock: `--offset HOST=...`")
	NsysPartialExport   = message("nsys-partial-export", Notice, "nsys export was told to leave tables or times out (--tables, --times): what is missing here may be in the report", "export again without `--tables` and `--times` if something is missing")
	NsysGraphUntimed    = message("nsys-graph-untimed", Notice, "of {n} runs of CUDA graphs the GPU told no times; they are not drawn", "record with `--cuda-graph-trace=node` to see into graphs")
	NsysError           = message("nsys-error", Notice, "the profiler says: {errors}", "read what the profiler says: it may have lacked rights, or lost data")
	NsysWarning         = message("nsys-warning", Notice, "the profiler says: {warnings}", "read what the profiler says: it may have lacked rights, or lost data")
)

// Ranks, captures and clocks of several inputs.
var (
	CaptureRepeated  = message("capture-repeated", Notice, "{it} has the same {events, or session and rows,} as {files}; left out", nothing+"; "+labelRanks)
	CaptureContained = message("capture-contained", Notice, "{it} is left out: its events are in {file}", nothing)
	RankEmpty        = message("rank-empty", Notice, "{it} has no events; left out", "nothing; SGLang writes such files for ranks whose profiler failed")
	RankOverlap      = message("rank-overlap", Notice, "{it} and {file} look like one capture of {rank}, but have different events; if they are of two hosts, labels can tell: node1={file}", labelRanks)
	RankLabel        = message("rank-label", Notice, "{why the label is ignored}", "fix the label: it is of the form `HOST/RANK=FILE`")
	RankRank         = message("rank-rank", Notice, "{which ranks contradict each other, and which one is taken}", labelRanks)
	RankHost         = message("rank-host", Notice, "{which hosts contradict each other, and which one is taken}", labelRanks)
	RankUnknown      = message("rank-unknown", Notice, "its rank is unknown; name it with {a label, or --rank-of}", "say it: `--rank-of PID=TP0`, or a label: `TP0=FILE`")
	RankByGPU        = message("rank-by-gpu", Notice, "nothing tells the ranks of its {n} processes; they are counted by their GPUs: --rank-of {pid}=TP0 says otherwise", "nothing, or say it: `--rank-of PID=TP0`")
	RankByPID        = message("rank-by-pid", Notice, "nothing tells the ranks of its {n} processes; they are counted in the order of their pids, which may be wrong: --rank-of {pid}=TP0 says otherwise", "say it: `--rank-of PID=TP0`")
	RankClockApart   = message("rank-clock-apart", Notice, "its collectives end {time} off those of its peers, in the median of {n}; it was not moved", labelRanks)
	RecordedTwice    = message("recorded-twice", Notice, "{what} duplicates {file}; merged{: how much is in both}", nothing)
	ClockConflict    = message("clock-conflict", Notice, "against the clock of {host}, {what contradicts}", "see [CLOCKS.md](CLOCKS.md); leave out the `--offset` that contradicts, or a file that is of another run")
	ClockStepped     = message("clock-stepped", Notice, "{n} of {n} collectives end elsewhere than this clock says; it may have been set during the capture", "look at one side of the step at a time, with `--from` and `--to`")
)

// Timelines.
var (
	NegativeDuration = message("negative-duration", DataLoss, "slice {name%q} ends {time} before it starts; drawn with no duration", nothing)
	NestedTooDeep    = message("nested-too-deep", DataLoss, "slice {name%q} lies below {n} others; drawn with no duration", "leave Python stacks out: `--cat` without `python_function`")
	FlowLost         = message("flow-lost", DataLoss, "arrow {name} has no slice at one end; left out", "tell this project: a reader drew an arrow to nothing")
	FlowWithoutEnd   = message("flow-without-end", Notice, "an arrow has no slice at one end; left out", "nothing: one end of the arrow is not among the events")
	EventOutOfReach  = message("event-out-of-reach", DataLoss, "event {name%q} of span {name%q} is more than 30 days off all spans; left out", clockOfHost)
	TimeOutOfReach   = message("time-out-of-reach", DataLoss, "span {name%q} is more than 30 days off all others; left out of the timeline, not of reports", clockOfHost+"; `--from` and `--to` choose one of the times")
	JSONSpan         = message("json-span", Notice, "the trace spans more than 104 days, over which Chrome JSON has no nanoseconds: times are written in whole microseconds; .pftrace keeps them", "write `.pftrace`, or less of it")
)
