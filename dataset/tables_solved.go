package dataset

// The rows of tables that are decided from all captures. They are as in reports: with names of ranks and
// hosts, on one clock, and each event once. Columns are only ever added; those that are looked up by value
// have the tag find, see package tablefile.

// A RequestRow is a request. Its first columns are those of 'sgtrace requests --format csv'.
type RequestRow struct {
	Time         int64  `parquet:"time_unix_ns,delta" unit:"ns" doc:"start of the outermost span, Unix time"`
	RID          string `parquet:"rid" find:"yes" doc:"the user's ID where known, else the server's"`
	Roles        string `parquet:"roles,dict" doc:"roles of the servers that worked on it"`
	Queue        *int64 `parquet:"queue_ns,optional" unit:"ns" doc:"waiting to be scheduled, prefill and decode side together"`
	Prefill      *int64 `parquet:"prefill_ns,optional" unit:"ns" doc:"computing the prompt"`
	Transfer     *int64 `parquet:"transfer_ns,optional" unit:"ns" doc:"decode side waits for the KV cache"`
	Decode       *int64 `parquet:"decode_ns,optional" unit:"ns" doc:"from the first decode step to the last"`
	Tokens       *int64 `parquet:"tokens,optional" doc:"tokens generated"`
	ITLP50       *int64 `parquet:"itl_p50_ns,optional" unit:"ns" doc:"gap between consecutive tokens: median, nearest rank"`
	ITLP90       *int64 `parquet:"itl_p90_ns,optional" unit:"ns" doc:"gap between consecutive tokens: 90th percentile, nearest rank"`
	ITLP99       *int64 `parquet:"itl_p99_ns,optional" unit:"ns" doc:"gap between consecutive tokens: 99th percentile, nearest rank"`
	ITLMax       *int64 `parquet:"itl_max_ns,optional" unit:"ns" doc:"longest gap between consecutive tokens"`
	TPOT         *int64 `parquet:"tpot_ns,optional" unit:"ns" doc:"time per output token after the first one, on the answering server"`
	TTFT         *int64 `parquet:"ttft_ns,optional" unit:"ns" doc:"time to the first token, as the answering server sees it"`
	E2E          *int64 `parquet:"e2e_ns,optional" unit:"ns" doc:"outermost span: gateway, else answering server"`
	Unaccounted  *int64 `parquet:"unaccounted_ns,optional" unit:"ns" doc:"part of E2E that no stage covers"`
	Status       string `parquet:"status,dict" doc:"finished, aborted, failed, unfinished"`
	Reason       string `parquet:"reason,dict" doc:"why it did not finish"`
	Flags        string `parquet:"flags,dict" doc:"why to doubt the row"`
	PromptTokens *int64 `parquet:"prompt_tokens,optional" doc:"tokens of the prompt"`
	CachedTokens *int64 `parquet:"cached_tokens,optional" doc:"tokens of the prompt found in the cache"`
	Retractions  *int64 `parquet:"retractions,optional" doc:"times the scheduler took it out of the batch"`
	Model        string `parquet:"model,dict" doc:"model that answered"`
	Room         string `parquet:"room" doc:"bootstrap room, hexadecimal"`
	Request      int32  `parquet:"request,delta" doc:"number of the request, from 0, by start"`
	TraceID      string `parquet:"trace_id" find:"yes" doc:"trace ID, hexadecimal"`
	Dur          int64  `parquet:"dur" unit:"ns" doc:"from time_unix_ns to the end of the last part"`
}

// A PartRow is what one server did for a request.
type PartRow struct {
	Request int32  `parquet:"request,delta" doc:"requests.request"`
	RID     string `parquet:"rid" find:"yes" doc:"request ID on that server"`
	Role    string `parquet:"role,dict" doc:"unified, prefill, decode, router, sender"`
	Host    string `parquet:"host,dict" doc:"host as reports print it; empty is unknown"`
	Start   int64  `parquet:"start,delta" unit:"ns" doc:"time on the common clock"`
	Dur     int64  `parquet:"dur" unit:"ns" doc:"duration"`
	Reason  string `parquet:"finish_reason,dict" doc:"as the server reports it: stop, length, abort; empty is unknown"`
}

// A StageRow is a stage of a request, a span of a gateway, or one of a service without stages.
type StageRow struct {
	Start      int64  `parquet:"start" unit:"ns" doc:"time on the common clock"`
	Dur        int64  `parquet:"dur" unit:"ns" doc:"duration"`
	Stage      string `parquet:"stage,dict" doc:"name of the stage; service:name for spans of services without stages"`
	StageOrder int32  `parquet:"stage_order,dict" doc:"position of the stage in reports, in request order"`
	Rank       string `parquet:"rank,dict" doc:"rank as reports print it; for other processes, label and host"`
	RankOrder  int32  `parquet:"rank_order,dict" doc:"position of the rank in reports"`
	Process    string `parquet:"process,dict" doc:"rank and native thread ID: one start of a server"`
	Host       string `parquet:"host,dict" doc:"host as reports print it; empty is unknown"`
	Label      string `parquet:"label,dict" doc:"thread label, the kind of process"`
	Role       string `parquet:"role,dict" doc:"unified, prefill, decode, router"`
	Service    string `parquet:"service,dict" doc:"service.name"`
	Request    int32  `parquet:"request,delta" doc:"requests.request; -1 is none"`
	Began      int64  `parquet:"request_start,delta" unit:"ns" doc:"requests.time_unix_ns of the request; 0 is none"`
	Lasted     int64  `parquet:"request_dur,dict" unit:"ns" doc:"requests.dur of the request; 0 is none"`
	RID        string `parquet:"rid,dict" find:"yes" doc:"of the request; empty is none"`
	Status     string `parquet:"status,dict" doc:"of the request; empty is none"`
	Model      string `parquet:"model,dict" doc:"model that answered the request; empty is none"`
	File       string `parquet:"file,dict" doc:"input that contains it"`
	Counted    bool   `parquet:"counted" doc:"whether reports count it: its times are possible, and it is not a repeat after a retraction"`
}

// A ClockRow says how the clock of a host relates to the common clock:
// t - ahead - drift_ppb * (t - t0) / 1e9.
type ClockRow struct {
	Clock string `parquet:"clock,dict" doc:"name in reports: the host"`
	Why   string `parquet:"why,dict" doc:"source: reference, given, recorded, matched, assumed"`
	By    string `parquet:"matched_by,dict" doc:"what was matched: kernels, collectives, requests, collectives of hosts; empty is nothing"`
	T0    int64  `parquet:"t0" unit:"ns" doc:"time on this clock at which ahead applies"`
	Ahead int64  `parquet:"ahead" unit:"ns" doc:"how far it is ahead of the common clock at t0"`
	Drift int64  `parquet:"drift_ppb" doc:"drift, ns per second"`
	Bound int64  `parquet:"bound" unit:"ns" doc:"largest error; -1 is unknown"`
}

// An ArrivalRow is one rank's arrival in a collective that was recorded on several ranks.
type ArrivalRow struct {
	Collective int64  `parquet:"collective,delta" doc:"number of the collective, from 0, by first arrival"`
	Name       string `parquet:"name,dict" doc:"kernel name"`
	Op         string `parquet:"op,dict" doc:"allreduce, ...; empty is unknown"`
	Group      string `parquet:"process_group,dict" doc:"name of the process group; empty is unknown"`
	Size       int32  `parquet:"group_size" doc:"number of ranks; -1 is unknown"`
	Dtype      string `parquet:"dtype,dict" doc:"element type; empty is unknown"`
	Elements   int64  `parquet:"elements" doc:"input elements, the largest of any rank; -1 is unknown"`
	Step       string `parquet:"step,dict" doc:"kind of step that launched it: prefill, decode, other"`
	Sync       bool   `parquet:"sync" doc:"no rank can leave before the last one arrives"`
	Rank       string `parquet:"rank,dict" doc:"rank as reports print it"`
	Host       string `parquet:"host,dict" doc:"host as reports print it; empty is unknown"`
	Start      int64  `parquet:"start" unit:"ns" doc:"when the rank arrived, on the common clock"`
	Dur        int64  `parquet:"dur" unit:"ns" doc:"until the rank left"`
	Late       int64  `parquet:"late" unit:"ns" doc:"how long after the first rank it arrived"`
	Bound      int64  `parquet:"bound" unit:"ns" doc:"largest error between the clocks of the ranks; 0 on one host, -1 is unknown"`
}

// A PlaceRow says which rank rows of a capture belong to.
type PlaceRow struct {
	Capture   string `parquet:"capture,dict" doc:"name of the capture's folder, after capture="`
	Process   int32  `parquet:"process" doc:"process of its rows; -1 if pid identifies it"`
	Thread    int32  `parquet:"thread" doc:"thread of its rows; -1 if pid identifies it"`
	PID       int64  `parquet:"pid" doc:"pid of its rows; -1 if process and thread identify it"`
	Rank      string `parquet:"rank,dict" doc:"rank as reports print it; for other processes, a name"`
	RankOrder int32  `parquet:"rank_order,dict" doc:"position of the rank in reports"`
	Host      string `parquet:"host,dict" doc:"host as reports print it; empty is unknown"`
	Clock     string `parquet:"clock,dict" doc:"clocks.clock"`
}

// A RepeatedRow is a row of slices that another capture also has, from another profiler's recording of the
// same process.
type RepeatedRow struct {
	Capture     string `parquet:"capture,dict" doc:"name of the capture's folder, after capture="`
	Kind        string `parquet:"kind,dict" doc:"slices.kind"`
	PID         int64  `parquet:"pid,dict" doc:"slices.pid"`
	Start       int64  `parquet:"start,delta" unit:"ns" doc:"slices.start"`
	Dur         int64  `parquet:"dur" unit:"ns" doc:"slices.dur"`
	Name        string `parquet:"name,dict" doc:"slices.name"`
	Correlation int64  `parquet:"correlation,delta" doc:"slices.correlation; 0 is none"`
}
