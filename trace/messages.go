package trace

// Advice shared by several messages.
const (
	copyAgain    = "copy the file again; if the original is damaged too, the count shows how much is lost"
	exportAgain  = "copy the file again, or run `nsys export` again on the report"
	nothing      = "nothing"
	tellProject  = "nothing; if a current version of the producer wrote this, please report it"
	labelRanks   = "if the files are from different ranks or hosts, label them: `node1/TP3=FILE`"
	rotatedFiles = "add the rotated files before and after; if spans were dropped, raise `OTEL_BSP_MAX_QUEUE_SIZE`"
	clockOfHost  = "check the clock of the host that wrote it"
)

// Inputs as a whole.
var (
	InputDamaged         = message("input-damaged", DataLoss, "reading stopped here: {error}; everything before this is used", copyAgain)
	InputUnusable        = message("input-unusable", Error, "{why the file cannot be read}", "follow the message; `sgtrace inspect` shows what the file is; other inputs are still used")
	InputWithoutRequests = message("input-without-requests", Info, "has no requests; left out here", "`report` and `merge` read profiler data, logs, and metrics")
	InputUnread          = message("input-unread", Info, "{n} MB of {n} MB have nothing of the selected requests; they were not parsed, so damage there goes unnoticed", "nothing; without a selection, all of the file is parsed")
	InputOtherKind       = message("input-other-kind", Notice, "was given as {format}, but is {format}; read as the latter", "nothing, if the file belongs here; otherwise fix the glob: `--torch`, `--nsys`, and `--otel` say what to expect")
	InputSkipped         = message("input-skipped", Notice, "{why the file, found in a folder, cannot be read}", "follow the message if the file holds captures; other inputs are used")
	InputsFound          = message("inputs-found", Info, "{what was taken from a folder, by kind; what was left out}", "nothing; `--exclude` leaves out more, and a file that you name is always read")
	DatasetUntabled      = message("dataset-untabled", Notice, "of a {noun}, reports read the original, or only its requests if that is gone; the dataset has tables of the rest for SQL", "keep the original where it is")
	DatasetIncomplete    = message("dataset-incomplete", DataLoss, "{which shards of its inputs it lacks}", "rerun the `extract --shard` tasks that it names; all of them is fine, too: what is there is skipped")
	MemorySpilled        = message("memory-spilled", Notice, "{size} did not fit in {size} of memory and went to a temporary file; this takes longer", "nothing, or allow more with `--max-memory`")
	SecretLeftOut        = message("secret-left-out", Info, "{kind of value} {name%q} may hold a prompt or credentials; left out (--keep-secrets keeps it)", "nothing; if the output stays private, `--keep-secrets` keeps prompts, credentials, and environments")
)

// OTLP.
var (
	OTLPTruncated     = message("otlp-truncated", DataLoss, "the document ends {where}; everything before this is used", "stop the server or the Collector before you copy; the missing tail may be in the next rotated file")
	OTLPSyntax        = message("otlp-syntax", DataLoss, "{what is wrong}; skipped {n} bytes to the next record", copyAgain)
	OTLPFrame         = message("otlp-frame", DataLoss, "damaged frame: {what is wrong}", copyAgain)
	OTLPProtobuf      = message("otlp-protobuf", DataLoss, "a message is damaged; everything before the damage is used", copyAgain)
	OTLPInvalidSpan   = message("otlp-invalid-span", DataLoss, "a span is left out: {what is wrong}", "check what wrote the span: a time or an ID is missing or impossible")
	OTLPLostValue     = message("otlp-lost-value", DataLoss, "an attribute or event has a value that cannot be represented; left out", "nothing, unless you need the attribute")
	OTLPOddValue      = message("otlp-odd-value", Notice, "an attribute's value does not match its type; kept as text", nothing)
	OTLPUnknownKey    = message("otlp-unknown-key", Notice, "key {name%q} is not part of OTLP; skipped", tellProject)
	OTLPGivenTwice    = message("otlp-given-twice", Notice, "all of its {n} spans are in {file}, too; counted once", "nothing, or leave out one of the two")
	OTLPDuplicateSpan = message("otlp-duplicate-span", Notice, "span {id%016x} {name%q} was exported more than once; counted once", "nothing: exporters resend what was not acknowledged; or you gave a file twice")
	OTLPIDCollision   = message("otlp-id-collision", Notice, "span {id%016x} {name%q} has the same ID as another span of its trace; both are kept, and children go to the first", "nothing, unless you combined dumps of several deployments")
	OTLPCycle         = message("otlp-cycle", DataLoss, "span {id%016x} {name%q} is its own ancestor; treated as a root", "check what wrote the spans, or whether dumps were spliced together")
	OTLPOtherSignals  = message("otlp-other-signals", Info, "messages with logs, metrics, or profiles were skipped", "nothing: profiles are not read, and logs and metrics only where a command shows them, and not with a selection of requests or from a dataset")
	PartsUnknown      = message("parts-unknown", Info, "{n} of {n} logs in it are of programs that sgtrace does not know: {name}", "nothing; of such programs, only what they call errors is read, where lines have a stamp and a level")
)

// Logs, records of requests, and metrics.
var (
	MetricsBadLine    = message("metrics-bad-line", DataLoss, "lines that are not samples were skipped: {n}, the first is line {n}", copyAgain)
	MetricsUntimed    = message("metrics-untimed", Notice, "values without a time: {n}, taken as of {time}, when the file was written", "if the file was copied, its time may be that of the copy: save metrics with `query_range` of Prometheus, which has times")
	MetricsNamed      = message("metrics-named", Info, "values without a time: {n}, taken as of {time}, the time in the name of the file", "nothing, if the file was saved then; otherwise rename it")
	MetricsSummed     = message("metrics-summed", Notice, "no label names a server: what counts as one may be the sum or the mean of several", "ask for the series themselves, without `sum` or `avg`: `sglang:num_running_reqs`")
	MetricsLegend     = message("metrics-legend", Notice, "nothing says which metric a column shows: {name}", "set the legend to Auto, so that columns are called by their series, or call the panel by its metric: Running requests, Queued requests, Token usage, or Generation throughput")
	TablesUntimed     = message("tables-untimed", Notice, "printed without a time: {n} tables; the last one is taken as of {time}, when the file was written, and how it came to that is not judged", "print `date` before each table")
	MetricsUnnamed    = message("metrics-unnamed", Notice, "no label says which server its values are of: each such file counts as one, {n} in all", "if files are of one server, put the time into their names: `a-2026-08-17T205320.prom`")
	LogZoneUnknown    = message("log-zone-unknown", Notice, "timestamps have no time zone; read as UTC", "give `--tz`, such as `--tz America/New_York` or `--tz -4`; or add an input that has Unix times")
	LogNoYear         = message("log-no-year", Notice, "stamps have no year; taken for {year%d}, the last one before the file was written", "touch the file with the right date if that is wrong: `touch -d 2025-12-31 FILE`")
	LogNoDate         = message("log-no-date", Notice, "stamps have no date; the last one is taken for {date}, the last such time before the file was written", "touch the file with the right time if that is wrong: `touch -d '2024-08-31 05:00' FILE`")
	LogDate           = message("log-date", Notice, "stamps have no date; the last one is taken for {date}, the only day on which they are of the time of other inputs", "give stamps with a date if that is wrong: `-o DT` of nvidia-smi dmon")
	LogNoTime         = message("log-no-time", DataLoss, "lines of batches or requests do not say when they were written; left out: {n%d}", "give the log as the server wrote it, or with the stamps of `kubectl logs --timestamps`")
	LogUptimes        = message("log-uptimes", Notice, "lines say how long the server had run; the last one is taken for {written}, when the file was written", "if the file was copied, its time may be that of the copy: keep logs with stamps, as docker, systemd, and Kubernetes do")
	EventAges         = message("event-ages", Notice, "events have ages, not times; they count from {written}, when the file was written", "give the events as JSON: `kubectl get events -o json`")
	LogLineLong       = message("log-line-long", Notice, "a line is longer than {n} MiB; the rest of it was passed over", "nothing: such a line holds a prompt")
	LogBinary         = message("log-binary", DataLoss, "lines with binary data in place of text: {n%d}; what stood there is lost, the first is here", copyAgain)
	LogDamaged        = message("log-damaged", DataLoss, "pieces of records cannot be read: several processes wrote over each other", "nothing; SGLang since 2026-02 writes one record after another")
	RecordBad         = message("record-bad", DataLoss, "lines that are no records, or do not say when a request was, were left out: {n%d}", "look at the file: it may be cut off, or written by another version")
	RecordTimeless    = message("record-timeless", DataLoss, "records say how long requests took, but not when; left out", "start the server with `--enable-metrics`")
	RecordsSlowOnly   = message("records-slow-only", Notice, "likely only slow requests are recorded here ({why}): latencies, percentiles, and rates are of these alone", "unset `SGLANG_LOG_REQUEST_EXCEEDED_MS`, use `--export-metrics-to-file`, or add a dump that has all requests")
	RecordsFailedOnly = message("records-failed-only", Notice, "only requests that failed or were aborted are recorded here, {n%d} of {n%d}: how many succeeded, and how long those took, is unknown", "if that is a selection, give the records of all requests")
	LogEmpty          = message("log-empty", Notice, "none of its {n} lines says how a server is doing", "give the log from when it served requests: of a rotated one, all files")
)

// NCCL Inspector.
var (
	InspectorAbout   = message("inspector-about", Notice, "{n} records say how long a collective took, but not when: each was between two writes, up to {duration} apart, and is drawn evenly between them", "for exact times, start the program with `NCCL_INSPECTOR_DUMP_VERBOSE=1`; who comes last is known without")
	InspectorUndated = message("inspector-undated", Notice, "{n} records say how long a collective took, but not when, and all were written at once: the order is real, the times are not", "start the program with `NCCL_INSPECTOR_DUMP_VERBOSE=1` and `NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500`; who comes last is known without")
	InspectorQueued  = message("inspector-queued", Notice, "{n} records have the time since the call, with the wait in queues (collective_cpu); they are drawn, and not compared between ranks", "set `NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING=1`, with a driver that lets NCCL time kernels")
)

// Requests.
var (
	RequestRootMissing    = message("request-root-missing", Notice, "thread span {name%q} belongs to a request whose root span is not in the dump; shown without it", "add the rotated files before and after, if there are any; SGLang never exports the root span of a request that failed before it was queued")
	RequestThreadsMissing = message("request-threads-missing", Notice, "request span {name%q} has no thread spans below it; they are missing from the file, or its processes don't trace", rotatedFiles)
	ThreadSpanMissing     = message("thread-span-missing", Notice, "stage {name%q} belongs to a thread span that is not in the dump; its rank is known only if its process is", rotatedFiles)
	HostsNamed            = message("hosts-named", Info, "hosts of requests are called as logs and metrics call the servers there: {which, and how that is known}", nothing)
	LinkTargetMissing     = message("link-target-missing", Notice, "stage {name%q} links to a span that is not in the dump", rotatedFiles)
	RIDCollision          = message("rid-collision", Notice, "{n} requests have the rid {rid%q}; their traces tell them apart", "avoid underscores in rids, because SGLang cuts a rid there; until then, use the full ID or the trace ID")
	RoomCollision         = message("room-collision", Notice, "several requests have the bootstrap room {room}; prefill and decode parts are joined only within a trace", "nothing, unless you combined dumps of several deployments: read them one at a time")
	NoRequest             = message("no-request", Notice, "span {name%q} belongs to no request; only the thread view shows it", "nothing; if these are requests of an engine, please report it")
	TokensImpossible      = message("tokens-impossible", DataLoss, "request {name%q} counts more tokens than any model can take; that count is left out", "if it is one request of many, a bit in the file flipped: copy it again; else check what wrote the span")
	TimeImpossible        = message("time-impossible", DataLoss, "span {name%q} {ends before it starts, or lasts more than a month}; its duration is left out", clockOfHost+"; if it is one span of many, a bit in the file flipped: copy it again")
)

// PyTorch traces and other Chrome JSON.
var (
	TraceTruncated        = message("trace-truncated", DataLoss, "the file ends {where}; everything before this is used", "let the profiler finish before the process exits; copy the file again")
	TraceSyntax           = message("trace-syntax", DataLoss, "{what is wrong}; skipped {n} bytes to the next event", copyAgain)
	TraceClockZero        = message("trace-clock-zero", DataLoss, "an event is at time 0, which the profiler writes when its clock fails; left out", "nothing; newer drivers and PyTorch versions avoid this")
	TraceParts            = message("trace-parts", Notice, "process IDs point to more than {n} ranks in one file; treated as processes of one rank", "merge the files of the ranks instead, with `sgtrace merge`")
	TraceMixed            = message("trace-mixed", DataLoss, "rank {n} and rank {n} wrote into this file at the same time; their events cannot be told apart and count as those of one rank", "let each rank write a file of its own")
	TraceNoBase           = message("trace-no-base", Notice, "times are relative, and the file does not say to what", "nothing if ranks share collectives, which place the clock; otherwise `--offset HOST=...`; PyTorch 2.4 and later record the base")
	TraceNoTime           = message("trace-no-time", DataLoss, "an event has no time, or an impossible one; left out", tellProject)
	TraceNoPhase          = message("trace-no-phase", DataLoss, "an event has no phase; left out", tellProject)
	TraceUnknownPhase     = message("trace-unknown-phase", Notice, "an event has phase {phase%q}, which has no place on a timeline; left out", nothing)
	TraceNoSuchPhase      = message("trace-no-such-phase", DataLoss, "an event has phase {phase%q}, which the format does not define; left out", copyAgain)
	TraceNotAnEvent       = message("trace-not-an-event", Notice, "a value in the list of events is not an event; skipped", nothing)
	TraceHeader           = message("trace-header", Notice, "header field {key} is not as expected; used in part: {error}", "nothing; you may have to label ranks")
	TraceHeaderLong       = message("trace-header-long", DataLoss, "the file has more data beside its events than any profiler writes; the rest of it is left out", "check what wrote the file: it may not be a profiler's trace")
	TraceEarlyEnd         = message("trace-early-end", Notice, "events follow the end of their list; read as part of it", nothing)
	OwnDrawing            = message("own-drawing", Notice, "sgtrace drew this timeline from requests; the requests themselves are in the dump that it was made from", "give reports the OTLP dump")
	OwnRowsRepeated       = message("own-rows-repeated", Notice, "a row of {name%q} repeats rows of a rank; left out", nothing)
	TraceOddName          = message("trace-odd-name", Notice, "a name has control characters or is not UTF-8; kept as it is", nothing)
	TraceComma            = message("trace-comma", Notice, "a comma is missing or extra; read as if it were right", nothing)
	TraceMissingValue     = message("trace-missing-value", Notice, "a key has no value; left out", nothing)
	TraceBareWord         = message("trace-bare-word", Notice, "a value, such as inf or N/A, is not valid JSON; kept as text", nothing)
	TraceOpenList         = message("trace-open-list", Notice, "a list is not closed; read as if it were", nothing)
	TraceUnescapedQuote   = message("trace-unescaped-quote", Notice, "a string has unescaped quotes in it; read up to the closing quote", "nothing; as of July 2026, PyTorch's profiler escapes names")
	TraceCounterValue     = message("trace-counter-value", Notice, "a counter has a value that is not a number; left out", nothing)
	TraceNegativeDuration = message("trace-negative-duration", Notice, "an event ends before it starts; treated as having no duration", nothing)
	TraceOpenSlice        = message("trace-open-slice", Notice, "a slice has no end; drawn up to the last event of the file", "nothing: it was open when the recording stopped")
	TraceUnmatchedEnd     = message("trace-unmatched-end", DataLoss, "an event ends a slice that did not begin in this file; left out", "nothing: it began before the recording")
)

// Annotations of nodes of CUDA graphs.
var (
	AnnotationsDamaged = message("annotations-damaged", DataLoss, "annotations of nodes of CUDA graphs end here: {error}; everything before this is used", copyAgain)
	AnnotationsOdd     = message("annotations-odd", DataLoss, "annotations that do not say what a node of a CUDA graph is called were left out", "check what wrote the file: keys are numbers of nodes, and values lists of texts or objects")
)

// Nsight Systems.
var (
	NsysTruncated       = message("nsys-truncated", DataLoss, "the file is cut off after {n} of {n} bytes, and rows in the missing part are lost; copy it again, or run nsys export again", exportAgain)
	NsysChanged         = message("nsys-changed", DataLoss, "another program wrote to the file while it was read; run this again when nsys export has finished", "wait until the program that writes the file has finished, then run this again")
	NsysTablesDamaged   = message("nsys-tables-damaged", DataLoss, "the list of tables is damaged, so some may be missing; copy the file again, or run nsys export again", exportAgain)
	NsysTablesFound     = message("nsys-tables-found", DataLoss, "the list of tables is damaged; found by their pages: {tables}; tables of unknown purpose: {n}", exportAgain)
	NsysTableDamaged    = message("nsys-table-damaged", DataLoss, "the file is {damaged or cut off}: {what is lost}; copy the file again, or run nsys export again ({error})", exportAgain)
	NsysTableUnreadable = message("nsys-table-unreadable", DataLoss, "the table cannot be read: {error}", exportAgain)
	NsysColumnMissing   = message("nsys-column-missing", DataLoss, "the table has no column {name%q} and is left out; run nsys export again", "run `nsys export` again with a newer nsys; if yours is new already, please report it")
	NsysNoDevice        = message("nsys-no-device", DataLoss, "the table has no column \"deviceId\", and the GPU of {n} of {n} rows is not known: those of a process count as one GPU", exportAgain)
	NsysContextDevice   = message("nsys-context-device", Notice, "the table has no column \"deviceId\"; the GPUs of rows are those of their CUDA contexts", exportAgain)
	NsysNameMissing     = message("nsys-name-missing", DataLoss, "a name (id {id}) is not in StringIds; the export is incomplete or damaged; run nsys export again", exportAgain)
	NsysExported        = message("nsys-exported", Notice, "is a report; {command} made a temporary export of it", "nothing; export it yourself so that the next run does not wait for nsys")
	NsysNoNames         = message("nsys-no-names", DataLoss, "the export has no table StringIds, so kernels, calls and threads have no names", "export again without `--tables`, or with `StringIds` among them")
	NsysNVTXKind        = message("nsys-nvtx-kind", DataLoss, "NVTX events of unknown kind {n} are left out; please report this file's version", tellProject)
	NsysPayload         = message("nsys-payload", DataLoss, "the payload of an NVTX event is not a JSON object and is left out; run nsys export again", tellProject)
	NsysTime            = message("nsys-time", DataLoss, "a row from {from%d} to {to%d} ns cannot be right and is left out; the file may be damaged", exportAgain)
	NsysBackwards       = message("nsys-backwards", Notice, "a row ends before it starts; treated as 0 ns long", nothing)
	NsysSessionStart    = message("nsys-session-start", DataLoss, "the session cannot have started {n%d} ns after 1970, as the export says; run nsys export again", exportAgain)
	NsysNoSessionStart  = message("nsys-no-session-start", Notice, "times count from the start of the session, and the export does not say when that was; its clock must be given or matched", "export with nsys 2022 or later, or give the clock: `--offset HOST=...`")
	NsysPartialExport   = message("nsys-partial-export", Notice, "nsys export was told to leave out tables or times (--tables, --times); what is missing here may be in the report", "export again without `--tables` and `--times` if something is missing")
	NsysSamplesThinned  = message("nsys-samples-thinned", Notice, "{n} of {n} samples of threads are drawn, to keep the timeline small", "nothing: reports read all of them")
	NsysGraphUntimed    = message("nsys-graph-untimed", Notice, "the GPU recorded no times for {n} runs of CUDA graphs; they are not drawn", "record with `--cuda-graph-trace=node` to see into graphs")
	NsysError           = message("nsys-error", Notice, "the profiler says: {errors}", "read what the profiler says: it may have lacked permissions or lost data")
	NsysWarning         = message("nsys-warning", Notice, "the profiler says: {warnings}", "read what the profiler says: it may have lacked permissions or lost data")
)

// Profilers of ROCm, and snapshots of memory.
var (
	RocmTableDamaged = message("rocm-table-damaged", DataLoss, "table {name} is damaged ({error}); {n} rows of it are used", copyAgain)
	RocmJournal      = message("rocm-journal", DataLoss, "rows that are only in the -wal file beside it are not read", "let the program that writes it end; then run `sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'`")
	RocmTime         = message("rocm-time", DataLoss, "a row from {from%d} to {to%d} ns cannot be right and is left out", copyAgain)
	RocmClock        = message("rocm-clock", Info, "times count from the boot of the host, and the file does not say when that was; give `--offset`, or add a PyTorch profiler trace of the same process", "give the clock: `--offset HOST=...`; or record with `rocprofv3 --output-format pftrace`, too: that file says it")
	RocmEmpty        = message("rocm-empty", DataLoss, "{what was recorded}; {why}", "stop the program with SIGTERM or let it end: its profiler writes what it recorded at the end")
	RocmNames        = message("rocm-names", DataLoss, "{n} rows have a name that is not in the file; called (no name)", copyAgain)
	MemoryNoTrace    = message("memory-no-trace", Notice, "it has no history of allocations, because recording was never switched on; it has only the blocks at the end", "call `torch.cuda.memory._record_memory_history()` before what you look for, or use SGLang's activity MEM")
	RocmAgents       = message("rocm-agents", Info, "GPUs have the numbers of agents, which count CPUs, too", "record with `rocprofv3 --agent-index type-relative`")
	RocmLost         = message("rocm-lost", DataLoss, "the buffer was full: {n} pieces of the trace are lost", "record with a larger `--perfetto-buffer-size`")
	RocmVersion      = message("rocm-version", DataLoss, "schema {version} has {what}, which sgtrace does not read; the rest is used", "record with `rocprofv3 --output-format json`")
)

// Ranks, captures and clocks of several inputs.
var (
	CaptureRepeated  = message("capture-repeated", Notice, "{it} has the same {events, lines, or session and rows,} as {files}; left out", nothing+"; "+labelRanks)
	CaptureContained = message("capture-contained", Notice, "{it} is left out: its events are in {file}", nothing)
	RankEmpty        = message("rank-empty", Notice, "{it} has no events; left out", "nothing; SGLang writes such files for ranks whose profiler failed")
	RankOverlap      = message("rank-overlap", Notice, "{it} and {file} look like one capture of {rank}, but have different events; if they are from two hosts, label them: node1={file}", labelRanks)
	RankLabel        = message("rank-label", Notice, "{why the label is ignored}", "fix the label; its form is `HOST/RANK=FILE`")
	RankRank         = message("rank-rank", Notice, "{which ranks contradict each other, and which one is taken}", labelRanks)
	RankHost         = message("rank-host", Notice, "{which hosts contradict each other, and which one is taken}", labelRanks)
	RankUnknown      = message("rank-unknown", Notice, "its rank is unknown; name it with {a label, or --rank-of}", "give the rank: `--rank-of PID=TP0`, or a label: `TP0=FILE`")
	RankByGPU        = message("rank-by-gpu", Notice, "nothing records the ranks of its {n} processes; they are numbered by GPU; --rank-of {pid}=TP0 overrides this", "nothing, or give the ranks: `--rank-of PID=TP0`")
	RankByPID        = message("rank-by-pid", Notice, "nothing records the ranks of its {n} processes; they are numbered by pid, which may be wrong; --rank-of {pid}=TP0 overrides this", "give the ranks: `--rank-of PID=TP0`")
	RankClockApart   = message("rank-clock-apart", Notice, "its collectives end {time} off its peers' (median of {n}); its clock was not moved", labelRanks)
	RecordedTwice    = message("recorded-twice", Notice, "{what} duplicates {file}; merged{: how much is in both}", nothing)
	ClockConflict    = message("clock-conflict", Notice, "against the clock of {host}, {what contradicts}", "see [CLOCKS.md](CLOCKS.md); drop the `--offset` that contradicts, or a file from another run")
	ClockSet         = message("clock-set", Notice, "its clock was set {forward or back} by {time} (within {time}) at about {time}; its later times are moved as if it had not been", nothing)
	ClockStepped     = message("clock-stepped", Notice, "{n} of {n} collectives contradict this clock; it may have been set during the capture", "look at one side of the step at a time, with `--from` and `--to`")
)

// Timelines.
var (
	RequestsLeftOut  = message("requests-left-out", Info, "the timeline's \"By request\" has {n} of {n} requests: those that matter, and some others", "nothing, or draw more with `--requests all`")
	NegativeDuration = message("negative-duration", DataLoss, "slice {name%q} ends {time} before it starts; drawn without duration", nothing)
	NestedTooDeep    = message("nested-too-deep", DataLoss, "slice {name%q} is nested below {n} others; drawn without duration", "leave out Python stacks: use `--cat` without `python_function`")
	FlowLost         = message("flow-lost", DataLoss, "arrow {name} has no slice at one end; left out", "please report it: a reader drew an arrow to nothing")
	FlowWithoutEnd   = message("flow-without-end", Notice, "an arrow has no slice at one end; left out", "nothing: one end of the arrow is not among the events")
	EventOutOfReach  = message("event-out-of-reach", DataLoss, "event {name%q} of span {name%q} is more than 30 days from all spans; left out", clockOfHost)
	TimeOutOfReach   = message("time-out-of-reach", DataLoss, "span {name%q} is more than 30 days from all others; left out of the timeline, kept in reports", clockOfHost+"; use `--from` and `--to` to choose one of the times")
	TimelineLarge    = message("timeline-large", Notice, "{slices}, {size}: the viewer may run out of memory", "draw a part: `--from` and `--to`, `--rank`, `--rid`, or `--around`; `merge --split` writes several files; `sgtrace report` needs no viewer")
	JSONSpan         = message("json-span", Notice, "the trace spans more than 104 days, too long for nanoseconds in Chrome JSON; times are in whole microseconds (.pftrace keeps nanoseconds)", "write `.pftrace`, or a shorter part")
)
