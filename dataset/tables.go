package dataset

// The rows of tables. A field is a column: its tags say how Parquet has it, how it is redacted
// (rules of package pseudonym), what it is counted in, and what it means. A column without a
// value is null where the tag says optional. Columns are only ever added.

// An inputRow is what was read, one for a capture.
type inputRow struct {
	Name      string `parquet:"name" doc:"the input as it was given to extract, by which messages call it"`
	Path      string `parquet:"path" doc:"absolute path of the original"`
	Label     string `parquet:"label" doc:"what the user said about it: LABEL=PATH"`
	Format    string `parquet:"format" doc:"of the original"`
	Hash      string `parquet:"hash" doc:"SHA-256 of the original's content, hexadecimal; of a redacted dataset its pseudonym"`
	Bytes     int64  `parquet:"bytes" unit:"bytes" doc:"size of the original"`
	Folder    bool   `parquet:"folder" doc:"the original is a folder of files"`
	Tool      string `parquet:"tool" doc:"version of sgtrace that wrote the capture"`
	Unusable  string `parquet:"unusable,optional" doc:"why nothing of it can be used"`
	Encoding  string `parquet:"encoding,optional" doc:"of a dump: json, zstd frames, ..."`
	Content   int64  `parquet:"content,optional" unit:"bytes" doc:"of a dump: size without compression"`
	Documents int64  `parquet:"documents,optional" doc:"of a dump: messages in it"`
	Spans     int64  `parquet:"spans,optional" doc:"of a dump: spans in it"`
	Other     int64  `parquet:"other,optional" doc:"of a dump: messages of other signals"`
}

// A diagRow is a message about the input.
type diagRow struct {
	During   string `parquet:"during,dict" redact:"own" doc:"which reading met it: index; inspect and list, of what the input holds; or a walk over kernels, copies, calls, ranges, frames, samples, backtraces, runs, counters"`
	Code     string `parquet:"code,dict" redact:"own" doc:"of the message: otlp-truncated"`
	Severity int32  `parquet:"severity" doc:"0 info, 1 notice, 2 data loss, 3 error"`
	Text     string `parquet:"text" doc:"what is wrong"`
	File     string `parquet:"file" doc:"where"`
	Line     int64  `parquet:"line" doc:"where; 0 if the format has no lines"`
	Offset   int64  `parquet:"byte_offset" unit:"bytes" doc:"where, without compression; -1 is unknown"`
	Count    int64  `parquet:"n" doc:"how often"`
}

// A resourceRow is a process that emitted spans.
type resourceRow struct {
	Resource   int32  `parquet:"resource" doc:"number in the capture"`
	Service    string `parquet:"service,dict" redact:"structural" doc:"service.name"`
	Instance   string `parquet:"instance,dict" redact:"request" doc:"service.instance.id"`
	Attributes string `parquet:"attributes" redact:"own" doc:"of the resource, as a JSON object"`
}

// A spanRow is a span as a server wrote it.
type spanRow struct {
	Start      int64  `parquet:"start,delta" unit:"ns" doc:"Unix time on the clock of the host"`
	Dur        int64  `parquet:"dur" unit:"ns" doc:"length; negative if the clock stepped back"`
	TraceID    string `parquet:"trace_id,dict" find:"yes" redact:"trace" doc:"hexadecimal"`
	SpanID     uint64 `parquet:"span_id" doc:"identifies the span within its trace"`
	ParentID   uint64 `parquet:"parent_id,optional" doc:"span_id of the span around it"`
	Name       string `parquet:"name,dict" redact:"span" doc:"of the span"`
	Resource   int32  `parquet:"resource,dict" doc:"process: resources.resource; 0 is unknown"`
	Scope      string `parquet:"scope,dict" redact:"structural" doc:"instrumentation scope"`
	Status     int32  `parquet:"status,dict" doc:"0 unset, 1 OK, 2 error"`
	Kind       int32  `parquet:"kind,dict" doc:"1 internal, 2 server, 3 client, 4 producer, 5 consumer"`
	Line       int64  `parquet:"line,delta" doc:"in the original; 0 if it has no lines"`
	Offset     int64  `parquet:"byte_offset,delta,optional" unit:"bytes" doc:"of the frame or document in an original without lines"`
	Attributes string `parquet:"attributes,dict,optional" redact:"own" doc:"as a JSON object, without what may be secret"`
}

// An eventRow is a point in time that a span reports.
type eventRow struct {
	Span       int64  `parquet:"span,delta" doc:"row of the span in spans, from 0"`
	Time       int64  `parquet:"time,delta" unit:"ns" doc:"Unix time on the clock of the host"`
	Name       string `parquet:"name,dict" redact:"structural" doc:"of the event"`
	Attributes string `parquet:"attributes,dict,optional" redact:"own" doc:"as a JSON object"`
}

// A linkRow names another span.
type linkRow struct {
	Span    int64  `parquet:"span,delta" doc:"row of the span in spans, from 0"`
	TraceID string `parquet:"trace_id,dict" redact:"trace" doc:"of the other span"`
	SpanID  uint64 `parquet:"span_id" doc:"of the other span"`
}

// A processRow is a process that a profiler recorded, or a file of several.
type processRow struct {
	Process   int32  `parquet:"process" doc:"number in the capture"`
	View      string `parquet:"view,dict,optional" redact:"own" doc:"collectives: the process once more, with what its collectives refer to"`
	Host      string `parquet:"host,dict" redact:"host" doc:"as the file says; empty is unknown"`
	Backend   string `parquet:"backend,dict" doc:"of torch.distributed: nccl"`
	PID       int64  `parquet:"pid" doc:"0 is unknown, or there are several"`
	Rank      int32  `parquet:"rank" doc:"as the header says; -1 is unknown"`
	WorldSize int32  `parquet:"world_size" doc:"-1 is unknown"`
	GPU       int32  `parquet:"gpu" doc:"the only accelerator that it used; -1 is unknown"`
	Absolute  bool   `parquet:"absolute" doc:"times are Unix times"`
	First     int64  `parquet:"first" unit:"ns" doc:"the first event"`
	Last      int64  `parquet:"last" unit:"ns" doc:"the end of the last event"`
	Records   int64  `parquet:"records" doc:"how many the file has"`
	Meta      string `parquet:"meta" redact:"json" doc:"all that the file says about itself, as JSON"`
}

// A rankRow is which rank a process is, or a part of a file of several, by what its own input
// says: other inputs may tell more.
type rankRow struct {
	Process int32  `parquet:"process" doc:"processes.process"`
	Part    string `parquet:"part" doc:"of a merged file"`
	Rank    string `parquet:"rank,dict" redact:"own" doc:"TP0 DP1, or rank 3; empty is unknown"`
	From    string `parquet:"rank_from,dict" redact:"own" doc:"what tells the rank: label, header, process, name"`
	Host    string `parquet:"host,dict" redact:"host" doc:"empty is unknown"`
	TP      int32  `parquet:"tp" doc:"tensor parallel rank; -1 is unknown"`
	PP      int32  `parquet:"pp" doc:"pipeline parallel rank; -1 is unknown"`
	DP      int32  `parquet:"dp" doc:"data parallel rank; -1 is unknown"`
	EP      int32  `parquet:"ep" doc:"expert parallel rank; -1 is unknown"`
	Global  int32  `parquet:"global_rank" doc:"number in the world; -1 is unknown"`
}

// A threadRow is where events lie: a thread, a stream, a counter.
type threadRow struct {
	Process     int32  `parquet:"process" doc:"processes.process"`
	Thread      int32  `parquet:"thread" doc:"number in the process, from 0"`
	Kind        string `parquet:"kind,dict" redact:"own" doc:"thread, stream, async, counter, other"`
	Part        string `parquet:"part,dict" doc:"of a merged file"`
	PID         int64  `parquet:"pid" doc:"of a stream the device"`
	TID         int64  `parquet:"tid" doc:"of a stream its number"`
	PIDText     string `parquet:"pid_text,dict" doc:"as the file has it"`
	TIDText     string `parquet:"tid_text,dict" doc:"as the file has it"`
	ProcessName string `parquet:"process_name,dict" doc:"empty is unknown"`
	Name        string `parquet:"name,dict" doc:"empty is unknown"`
	Labels      string `parquet:"labels,dict" doc:"of the process"`
	ProcessSort int64  `parquet:"process_sort" doc:"the order that the file wants of processes"`
	Sort        int64  `parquet:"sort" doc:"the order that the file wants of threads"`
	Folder      string `parquet:"folder,dict" doc:"groups of rows that it is in"`
	Unit        string `parquet:"unit,dict" doc:"of a counter"`
}
