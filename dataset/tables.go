package dataset

// The rows of the tables. A field is a column: its tags give the Parquet encoding, the redaction rule (see
// package redact), the unit, and the meaning. A missing value is null if the tag says optional. Columns are
// only ever added.

// An inputRow describes the input; a capture has one.
type inputRow struct {
	Name      string `parquet:"name" doc:"input as given to extract; messages use this name"`
	Path      string `parquet:"path" doc:"absolute path of the original"`
	Label     string `parquet:"label" doc:"label the user gave, as in LABEL=PATH"`
	Format    string `parquet:"format" doc:"format of the original"`
	Hash      string `parquet:"hash" doc:"SHA-256 of the original's content, hexadecimal; a pseudonym if the dataset is redacted"`
	Bytes     int64  `parquet:"bytes" unit:"bytes" doc:"size of the original"`
	Folder    bool   `parquet:"folder" doc:"the original is a folder of files"`
	Tool      string `parquet:"tool" doc:"sgtrace version that wrote the capture"`
	Unusable  string `parquet:"unusable,optional" doc:"why the input cannot be used at all"`
	Encoding  string `parquet:"encoding,optional" doc:"encoding of a dump: json, zstd frames, ..."`
	Content   int64  `parquet:"content,optional" unit:"bytes" doc:"size of a dump, uncompressed"`
	Documents int64  `parquet:"documents,optional" doc:"messages in a dump"`
	Spans     int64  `parquet:"spans,optional" doc:"spans in a dump"`
	Other     int64  `parquet:"other,optional" doc:"messages of other signals in a dump"`
}

// A diagRow is a message about the input.
type diagRow struct {
	During   string `parquet:"during,dict" redact:"own" doc:"when it was found: index; inspect and list, while listing the contents; or the table being read: kernels, copies, calls, ranges, frames, samples, backtraces, runs, counters"`
	Code     string `parquet:"code,dict" redact:"own" doc:"message code, such as otlp-truncated"`
	Severity int32  `parquet:"severity" doc:"0 info, 1 notice, 2 data loss, 3 error"`
	Text     string `parquet:"text" doc:"what went wrong"`
	File     string `parquet:"file" doc:"file name"`
	Line     int64  `parquet:"line" doc:"line number; 0 if the format has no lines"`
	Offset   int64  `parquet:"byte_offset" unit:"bytes" doc:"position in the uncompressed file; -1 is unknown"`
	Count    int64  `parquet:"n" doc:"number of occurrences"`
}

// A resourceRow is a process that emitted spans.
type resourceRow struct {
	Resource   int32  `parquet:"resource" doc:"resource number within the capture"`
	Service    string `parquet:"service,dict" redact:"structural" doc:"service.name"`
	Instance   string `parquet:"instance,dict" redact:"request" doc:"service.instance.id"`
	Attributes string `parquet:"attributes" redact:"own" doc:"resource attributes, as a JSON object"`
}

// A spanRow is a span as a server wrote it.
type spanRow struct {
	Start      int64  `parquet:"start,delta" unit:"ns" doc:"Unix time on the host's clock"`
	Dur        int64  `parquet:"dur" unit:"ns" doc:"duration; negative if the clock stepped back"`
	TraceID    string `parquet:"trace_id,dict" find:"yes" redact:"trace" doc:"trace ID, hexadecimal"`
	SpanID     uint64 `parquet:"span_id" doc:"span ID, unique within its trace"`
	ParentID   uint64 `parquet:"parent_id,optional" doc:"span_id of the parent"`
	Name       string `parquet:"name,dict" redact:"span" doc:"span name"`
	Resource   int32  `parquet:"resource,dict" doc:"process: resources.resource; 0 is unknown"`
	Scope      string `parquet:"scope,dict" redact:"structural" doc:"instrumentation scope"`
	Status     int32  `parquet:"status,dict" doc:"0 unset, 1 OK, 2 error"`
	Kind       int32  `parquet:"kind,dict" doc:"1 internal, 2 server, 3 client, 4 producer, 5 consumer"`
	Line       int64  `parquet:"line,delta" doc:"line in the original; 0 if it has no lines"`
	Offset     int64  `parquet:"byte_offset,delta,optional" unit:"bytes" doc:"position of the frame or document, if the original has no lines"`
	Attributes string `parquet:"attributes,optional" redact:"own" doc:"attributes as a JSON object, without likely secrets"`
}

// An eventRow is a point in time that a span reports.
type eventRow struct {
	Span       int64  `parquet:"span,delta" doc:"row of the span in spans, from 0"`
	Time       int64  `parquet:"time,delta" unit:"ns" doc:"Unix time on the host's clock"`
	Name       string `parquet:"name,dict" redact:"structural" doc:"event name"`
	Attributes string `parquet:"attributes,optional" redact:"own" doc:"attributes as a JSON object"`
}

// A linkRow names another span.
type linkRow struct {
	Span    int64  `parquet:"span,delta" doc:"row of the span in spans, from 0"`
	TraceID string `parquet:"trace_id,dict" redact:"trace" doc:"trace ID of the linked span"`
	SpanID  uint64 `parquet:"span_id" doc:"span ID of the linked span"`
}

// A processRow is a process that a profiler recorded, or a file of several.
type processRow struct {
	Process   int32  `parquet:"process" doc:"number in the capture"`
	View      string `parquet:"view,dict,optional" redact:"own" doc:"collectives: the same process again, with the objects that its collectives refer to"`
	Host      string `parquet:"host,dict" redact:"host" doc:"host name in the file; empty is unknown"`
	Backend   string `parquet:"backend,dict" doc:"torch.distributed backend: nccl"`
	PID       int64  `parquet:"pid" doc:"process ID; 0 if unknown or more than one"`
	Rank      int32  `parquet:"rank" doc:"rank in the header; -1 is unknown"`
	WorldSize int32  `parquet:"world_size" doc:"number of ranks in the job; -1 is unknown"`
	GPU       int32  `parquet:"gpu" doc:"the accelerator it used, if just one; -1 is unknown"`
	Absolute  bool   `parquet:"absolute" doc:"times are Unix time"`
	First     int64  `parquet:"first" unit:"ns" doc:"start of the first event"`
	Last      int64  `parquet:"last" unit:"ns" doc:"end of the last event"`
	Records   int64  `parquet:"records" doc:"number of records in the file"`
	Meta      string `parquet:"meta" redact:"json" doc:"the file's own metadata, as JSON"`
}

// A rankRow is the rank of a process, or of a part of a merged file, according to its own input: other
// inputs may say more.
type rankRow struct {
	Process int32  `parquet:"process" doc:"processes.process"`
	Part    string `parquet:"part" doc:"part of a merged file"`
	Rank    string `parquet:"rank,dict" redact:"own" doc:"rank: TP0 DP1, or rank 3; empty is unknown"`
	From    string `parquet:"rank_from,dict" redact:"own" doc:"where the rank comes from: label, header, process, name"`
	Host    string `parquet:"host,dict" redact:"host" doc:"empty is unknown"`
	TP      int32  `parquet:"tp" doc:"tensor parallel rank; -1 is unknown"`
	PP      int32  `parquet:"pp" doc:"pipeline parallel rank; -1 is unknown"`
	DP      int32  `parquet:"dp" doc:"data parallel rank; -1 is unknown"`
	EP      int32  `parquet:"ep" doc:"expert parallel rank; -1 is unknown"`
	Global  int32  `parquet:"global_rank" doc:"rank in the whole job; -1 is unknown"`
}

// A threadRow is a track that holds events: a thread, a stream, a counter.
type threadRow struct {
	Process     int32  `parquet:"process" doc:"processes.process"`
	Thread      int32  `parquet:"thread" doc:"thread number within the process, from 0"`
	Kind        string `parquet:"kind,dict" redact:"own" doc:"thread, stream, async, counter, other"`
	Part        string `parquet:"part,dict" doc:"part of a merged file"`
	PID         int64  `parquet:"pid" doc:"process ID; of a stream, the device"`
	TID         int64  `parquet:"tid" doc:"thread ID; of a stream, its number"`
	PIDText     string `parquet:"pid_text,dict" doc:"pid as text, if the file has one"`
	TIDText     string `parquet:"tid_text,dict" doc:"tid as text, if the file has one"`
	ProcessName string `parquet:"process_name,dict" doc:"empty is unknown"`
	Name        string `parquet:"name,dict" doc:"empty is unknown"`
	Labels      string `parquet:"labels,dict" doc:"labels of the process"`
	ProcessSort int64  `parquet:"process_sort" doc:"sort index of the process in the file"`
	Sort        int64  `parquet:"sort" doc:"sort index of the thread in the file"`
	Folder      string `parquet:"folder,dict" doc:"row groups that contain it"`
	Unit        string `parquet:"unit,dict" doc:"unit of a counter"`
}
