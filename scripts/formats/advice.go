package main

// An advised diagnostic is one with what the user can do about it. Severity and text
// are those in the code, unless they are put together there.
type advised struct{ do, severity, says string }

const (
	copyAgain   = "copy the file again; if the original is as damaged, what was lost is what the count says"
	exportAgain = "copy the file again, or run `nsys export` again on the report"
	nothing     = "nothing"
	tellProject = "nothing; if the producer is a current one, tell this project"
	labelRanks  = "label files where they are of other ranks or hosts: `node1/TP3=FILE`"
)

// advice has all codes of diagnostics.
var advice = map[string]advised{
	// Inputs as a whole.
	"input-damaged":          {do: copyAgain},
	"input-unusable":         {do: "as the message says; `sgtrace inspect` shows what a file is", says: "why the file could not be read at all; the others are used"},
	"input-without-requests": {do: "give it to `merge` or `report --by-rank`, which read profiles, too"},
	"input-skipped":          {do: "nothing, unless the file was meant to be read: `sgtrace inspect` shows what it is", severity: "notice", says: "the input is not of a kind that this command reads; the others are used"},
	"memory-spilled":         {do: "nothing, or allow more with `--max-memory`", says: "… had no room within … of memory and went to a temporary file, which takes longer"},
	"secret-left-out": {do: "nothing; `--keep-secrets` keeps prompts, credentials and environments if the output stays where it is",
		says: "an attribute, argument or payload may hold a prompt or credentials; left out"},

	// OTLP.
	"otlp-truncated":      {says: "the input ends inside the head of a frame", do: "stop the server or the Collector before copying; the tail that is missing may be in the next rotated file"},
	"otlp-syntax":         {severity: "data loss", says: "bytes between two records are skipped, or a value is read past its damage", do: copyAgain},
	"otlp-frame":          {says: "no frame begins here; skipped … bytes to the next one", do: copyAgain},
	"otlp-protobuf":       {do: copyAgain},
	"otlp-invalid-span":   {do: "look at what wrote the span: a time or an id is missing or impossible"},
	"otlp-lost-value":     {do: nothing + ", unless the attribute is one that is needed"},
	"otlp-odd-value":      {do: nothing},
	"otlp-unknown-key":    {do: tellProject},
	"otlp-duplicate-span": {do: nothing + ": exporters send again what was not confirmed; or a file was given twice"},
	"otlp-id-collision":   {do: nothing + ", unless dumps of several deployments were given at once"},
	"otlp-cycle":          {do: "look at what wrote the spans, or whether dumps were spliced"},
	"otlp-other-signals":  {do: nothing + ": logs and metrics are of no use here"},

	// Requests.
	"request-root-missing":    {do: "add the rotated files before and after, if there are; SGLang never exports the root of a request that failed before it was queued"},
	"request-threads-missing": {do: "add the rotated files before and after; raise `OTEL_BSP_MAX_QUEUE_SIZE` where spans were dropped"},
	"thread-span-missing":     {do: "the same as for `request-threads-missing`"},
	"link-target-missing":     {do: "the same as for `request-threads-missing`"},
	"rid-collision":           {do: "choose rids without an underscore, behind which SGLang cuts; use the full id or the trace id meanwhile"},
	"room-collision":          {do: nothing + ", unless dumps of several deployments were given at once: give them one by one"},
	"no-request":              {do: "nothing; if these are requests of an engine, tell this project"},

	// PyTorch traces and other Chrome JSON.
	"trace-truncated":         {says: "the file ends between two events; everything before is used", do: "let the profiler finish before the process ends; copy the file again"},
	"trace-syntax":            {says: "an event is cut off by what comes behind it; skipped … bytes", do: copyAgain},
	"trace-clock-zero":        {do: "nothing; newer drivers and versions of PyTorch do better"},
	"trace-parts":             {severity: "notice", says: "pids are of more than … ranks in one file; taken as processes of one", do: "merge the files of the ranks instead, with `sgtrace merge`"},
	"trace-no-base":           {do: "nothing where ranks share collectives, which place it; else `--offset HOST=...`; PyTorch says it since 2.4"},
	"trace-no-time":           {do: tellProject},
	"trace-no-phase":          {do: tellProject},
	"trace-unknown-phase":     {do: nothing},
	"trace-no-such-phase":     {do: copyAgain},
	"trace-not-an-event":      {do: nothing},
	"trace-header":            {do: nothing + "; ranks may have to be given by labels"},
	"trace-header-long":       {do: "look at what wrote the file: it may be no trace of a profiler"},
	"trace-early-end":         {do: nothing},
	"own-drawing":             {do: "give reports the OTLP dump", says: "this program drew it, of requests: what they were is in the dump that it was made of"},
	"own-rows-repeated":       {do: nothing, says: "a row of \"Side by side\" repeats those of a rank; left out"},
	"trace-odd-name":          {do: nothing},
	"trace-comma":             {severity: "notice", do: nothing},
	"trace-missing-value":     {severity: "notice", do: nothing},
	"trace-bare-word":         {severity: "notice", do: nothing},
	"trace-open-list":         {severity: "notice", do: nothing},
	"trace-unescaped-quote":   {severity: "notice", do: nothing + "; PyTorch's profiler escapes names since July 2026"},
	"trace-counter-value":     {do: nothing},
	"trace-negative-duration": {do: nothing},
	"trace-open-slice":        {do: nothing + ": it was open when the recording stopped"},
	"trace-unmatched-end":     {do: nothing + ": it began before the recording did"},

	// Nsight Systems.
	"nsys-truncated":        {do: exportAgain},
	"nsys-changed":          {do: "wait until what writes the file has ended, and run again"},
	"nsys-tables-damaged":   {do: exportAgain},
	"nsys-table-damaged":    {says: "…: … rows were read, … are lost; copy the file again, or run nsys export again (…)", do: exportAgain},
	"nsys-table-unreadable": {do: exportAgain},
	"nsys-column-missing":   {do: "run `nsys export` again with a newer nsys; if it is a new one, tell this project"},
	"nsys-name-missing":     {do: exportAgain},
	"nsys-nvtx-kind":        {do: tellProject},
	"nsys-payload":          {do: tellProject},
	"nsys-time":             {do: exportAgain},
	"nsys-backwards":        {do: nothing},
	"nsys-session-start":    {do: exportAgain},
	"nsys-no-session-start": {do: "export with a version of nsys from 2022 on, or give the clock: `--offset HOST=...`"},
	"nsys-partial-export":   {do: "export again without `--tables` and `--times` if something is missing"},
	"nsys-graph-untimed":    {do: "record with `--cuda-graph-trace=node` to see into graphs"},
	"nsys-error":            {do: "read what the profiler says: it may not have had the rights, or lost data", severity: "notice", says: "the profiler says: …"},
	"nsys-warning":          {do: "the same as for `nsys-error`", severity: "notice", says: "the profiler says: …"},

	// Ranks, captures and clocks of several inputs.
	"capture-repeated":  {says: "it has the same session and rows as …; left out", do: nothing + "; " + labelRanks},
	"capture-contained": {do: nothing},
	"input-other-kind":  {do: "nothing, if the file belongs there; else mend the glob: `--torch`, `--nsys` and `--otel` say what is expected"},
	"rank-empty":        {do: "nothing; SGLang writes such files for ranks whose profiler failed"},
	"rank-overlap":      {do: labelRanks},
	"rank-unknown":      {do: "say it: `--rank-of PID=TP0`"},
	"rank-clock-apart":  {do: labelRanks},
	"recorded-twice":    {says: "… is of the same process as …, and drawn with it…", do: nothing},
	"clock-conflict":    {do: "see [CLOCKS.md](CLOCKS.md); leave out the `--offset` that contradicts, or a file that is of another run"},
	"clock-stepped":     {do: "look at one side of the step at a time, with `--from` and `--to`"},

	// Timelines.
	"negative-duration":  {do: nothing},
	"time-impossible":    {severity: "data loss", says: "a span ends before it starts, or lasts more than a month; its duration is in no report", do: "look at the clock of the host that wrote it; where it is one span of many, a bit of the file has flipped: copy it again"},
	"nested-too-deep":    {do: "leave Python stacks out: `--cat` without `python_function`"},
	"flow-without-end":   {says: "arrow … has no slice at one end; left out", do: nothing + ": one end of the arrow is not among the events"},
	"event-out-of-reach": {do: "look at the clock of the host that wrote it"},
	"time-out-of-reach":  {do: "look at the clock of the host that wrote it; `--from` and `--to` choose one of the times"},
	"json-span":          {do: "write `.pftrace`, or less of it"},
}
