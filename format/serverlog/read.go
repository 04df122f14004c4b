package serverlog

import (
	"bytes"
	"time"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/format/serverlog/errortext"
	"github.com/sgtrace/sgtrace/format/serverlog/requestlog"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A reader reads one log, line by line. Its memory does not grow with the log.
type reader struct {
	in    *format.Input
	f     *series.Filler
	rows  *spantable.RequestFiller
	base  string // name of the server, from its file
	line  int64  // current one
	read  int    // lines that were used
	other int    // lines about unknown trouble
	first int64  // the first of these; 0 is none

	stamps   logline.Stamper
	around   *logline.Unwrapper
	requests *requestlog.Reader

	places   map[string]int32
	placeKey []byte   // buffer for keys of places
	last     struct { // of the previous line
		header []byte
		server int32
		place  int32
	}
	servers    map[wrappedServer]int32
	lastServer struct { // of the previous line; id is plus one
		of wrappedServer
		id int32
	}
	layouts [2][]layoutField             // of the last decode line and the last prefill line
	ids     [][series.KnownMetrics]int32 // of series, plus one, by place
	roles   map[int32]string             // of servers
	engine  string

	now      trace.Time   // time of the last line with a stamp; before the first one, that one's; 0 if there is none
	here     int32        // source of the last line with a stamp; noPlace before the first one
	told     series.Place // source of vLLM's last statistics of batches, at toldAt
	toldAt   trace.Time
	nested   bool   // the line was inside a record
	asks     bool   // the previous line announces NCCL's error
	alone    bool   // not a log, but the output of a program as it ended, without times
	process  string // named in the line, in logs of vLLM and Ray; "" is unknown
	raised   []*raised
	began    map[string]bool           // processes that have printed a line
	kernel   logline.Kernel            // of the host, in the same journal
	printed  *logline.CollectiveReader // for the output of NCCL, its watchdog, and py-spy
	spy      series.Instant            // time and place of the last run of py-spy; Line is 0 before
	stands   string                    // innermost frame of the last stack printed by faulthandler
	survives struct {                  // the process that last printed a failure that it survives, and when
		process string
		at      trace.Time
	}
	launched    launched
	timedOut    bool                    // a collective timed out
	asked       asked                   // since the last batch
	rooms       map[string]transferring // by the failed part, and the room
	advised     advice                  // about transfers that were given up
	complaints  errortext.Complaints
	lost        bool // a line reports a failed transfer
	retracted   map[dpRank]retracted
	drafted     map[int32]drafted // by place
	unserved    series.Instant    // the first of the last looks of Dynamo's discovery, which found no server; Count is 0 if the last one found some
	preemptions float64
	stopping    bool   // it was told to shut down
	head        []byte // the first lines of the log, and their number
	headLines   int64
	headYear    int // year of the first stamps of the log; 0 is unknown
	year        int // for stamps without one; 0 is not known yet
	untimed     int // lines about batches without a stamp
	undated     undated
}

func newReader(in *format.Input, opt *format.Options) *reader {
	f := opt.Series.Fill(in.Name, "server log")
	r := &reader{in: in, f: f, rows: opt.Records.Fill(f), base: serverName(in.Name), around: logline.New(), printed: logline.NewCollectiveReader(opt.Flight, in.Name, len(opt.Series.Sources)-1),
		places: map[string]int32{}, servers: map[wrappedServer]int32{}, roles: map[int32]string{}, rooms: map[string]transferring{}, complaints: errortext.NewComplaints(opt.Series), began: map[string]bool{}, retracted: map[dpRank]retracted{}, drafted: map[int32]drafted{}}
	r.printed.Spy.Done = r.spied
	r.requests = requestlog.New(f, r.rows, &r.stamps, r.strange)
	r.kernel.Path = in.Path
	r.here = noPlace
	return r
}

// noPlace is the place of no line.
const noPlace = -1

// begin looks for the first stamp of a log, which gives the approximate time of lines before it, and the year of stamps
// without one.
func (r *reader) begin(head []byte) {
	i := stampIn(head)
	r.head, r.headLines = head, int64(bytes.Count(head, []byte("\n")))
	if i < 0 {
		r.headYear = yearIn(head)
		return
	}
	r.headYear, _ = logline.Digits(head[i+1:], 4)
	if i == 0 || head[i-1] == '\n' { // no prefix shows its zone
		r.now, _ = r.stamps.Read(head[i+1:])
	}
}

// yearIn returns the year of the first stamp with one in a head, anywhere in a line; 0 if there is none.
func yearIn(head []byte) int {
	for from := 0; ; from++ {
		i := bytes.Index(head[from:], []byte("20"))
		if i < 0 {
			return 0
		}
		if from += i; logline.IsStamp(head[from:]) {
			if year, ok := logline.Digits(head[from:], 4); ok {
				return year
			}
		}
	}
}

// take reads one line, in any wrapping.
func (r *reader) take(b []byte) {
	b = r.around.Bare(b)
	r.f.Line(r.line)
	var w logline.Wrapping
	at := 0
	if len(b) > 0 && b[0] == '{' && !requestlog.IsRecord(b) && (r.inJSON(b) || r.answer(b)) {
		return
	}
	if len(b) < 22 || b[0] != '[' || !logline.IsStamp(b[1:]) {
		if at = stampIn(b); at < 0 {
			r.without(b, w)
			return
		}
		outer, _ := outside(b[:at])
		w = r.around.Unwrap(outer)
	}
	if r.process = r.wrapped(b[:at]); r.process != "" {
		r.begun(r.process)
	}
	r.stamped(b[at+1:], w)
}

// wrapped returns the process named in the text before a line, and records its kind for lines without a stamp.
func (r *reader) wrapped(before []byte) string {
	if len(before) == 0 {
		return ""
	}
	process, outer := logline.Process(before)
	r.around.Learn(outer)
	return string(process)
}

// stampIn returns the start of the stamp of a line, "[2026-", or -1.
func stampIn(b []byte) int {
	const looked = 4096
	head := b[:min(len(b), looked)]
	for from := 0; ; {
		i := bytes.Index(head[from:], []byte("[20"))
		if i < 0 {
			return -1
		}
		if from += i; logline.IsStamp(head[from+1:]) {
			return from
		}
		from += 3
	}
}

// stamped reads a line after the bracket of its stamp.
func (r *reader) stamped(b []byte, w logline.Wrapping) {
	stamp, ok := r.stamps.Read(b)
	end := bytes.IndexByte(b, ']')
	if !ok || end < logline.DateTime {
		r.strange()
		return
	}
	ns, n, grain := logline.Fraction(b[logline.DateTime:end])
	header := b[logline.DateTime+n : end]
	at := r.place(stamp+ns, w, grain)
	if level := logline.RayLevel(header); level != nil {
		_, said, _ := bytes.Cut(b[end+1:], colon) // after "node_manager.cc:170: "
		r.leveled(said, level, at, r.placeOf(nil, w))
		return
	}
	said := bytes.TrimPrefix(b[end+1:], []byte(" "))
	place := r.placeOf(header, w)
	if p := r.f.Set.Places[place]; p.Rank == trace.NoRank && rankOfWorker(r.process) != trace.NoRank {
		p.Rank = rankOfWorker(r.process)
		place = r.f.Place(p)
	}
	if !r.tracedBehind(said) {
		r.body(bytes.TrimLeft(said, " "), at, place)
	}
}

// place returns the time of a line. If a log collector added a stamp with a zone within two seconds, that is just as right,
// and more precise; otherwise it shows the zone of the line's own stamp.
func (r *reader) place(stamp trace.Time, w logline.Wrapping, grain int64) trace.Time {
	zone := &r.f.Source().Zone
	if w.At == 0 {
		zone.Local = zone.By == ""
		r.f.Within(grain)
		if zone.By != "" { // of an earlier line
			return stamp - trace.Time(zone.East)
		}
		return stamp
	}
	const quarter = trace.Time(15 * time.Minute)
	east := (stamp - w.At + quarter/2) / quarter * quarter
	if stamp-w.At < -quarter/2 {
		east = (stamp - w.At - quarter/2) / quarter * quarter
	}
	if zone.By == "" && !zone.Local {
		zone.East, zone.By = time.Duration(east), "stamps with a zone beside local ones"
	}
	if zone.Local {
		zone.Beside(stamp, w.At)
		r.f.Within(grain)
		return stamp
	}
	if late := w.At - (stamp - east); late >= 0 && late < trace.Time(grain)+1e9 {
		r.f.Within(0)
		return w.At
	}
	r.f.Within(grain)
	return stamp - east
}

var (
	prefillBatch = []byte("Prefill batch")
	decodeBatch  = []byte("Decode batch")
	accessLine   = []byte("INFO:     ")
	ncclLine     = []byte(" NCCL ")
)

// body reads the text after a stamp.
func (r *reader) body(b []byte, at trace.Time, place int32) {
	level := logline.LevelOf(b)
	switch {
	case len(b) > 0 && levels[b[0]]:
		b = unleveled(b)
	case len(b) > 0 && b[0] == '[': // "[metrics.py:424][INFO]: ", from a custom format
		b = message(b)
	}
	r.leveled(b, level, at, place)
}

// leveled reads the text after a stamp and a level, which may be nil.
func (r *reader) leveled(b, level []byte, at trace.Time, place int32) {
	r.f.Saw(at)
	r.now, r.here = at, place
	switch {
	case bytes.HasPrefix(b, decodeBatch):
		r.batch(b[len(decodeBatch):], at, place, false)
	case bytes.HasPrefix(b, prefillBatch):
		r.batch(b[len(prefillBatch):], at, place, true)
	case bytes.HasPrefix(b, requestlog.StatsBegin):
		switch r.requests.Stats(b[len(requestlog.StatsBegin):], r.requestLine(at, place)) {
		case spantable.PrefillRole:
			r.roleIs(place, "prefill")
		case spantable.DecodeRole:
			r.roleIs(place, "decode")
		}
	case isAccess(b):
		r.access(b, at, place)
	case bytes.HasPrefix(b, []byte("Engine ")) || bytes.HasPrefix(b, []byte("Avg prompt throughput")): // vLLM under Dynamo
		r.engineLine(b, at, place)
	case requestlog.IsRecord(b):
		r.requests.JSON(b, r.requestLine(at, place))
	case len(b) > 0 && b[0] == '{':
		r.strange()
	case bytes.HasPrefix(b, requestlog.Received):
		r.rows.Received(at)
	case bytes.HasPrefix(b, requestlog.Finished):
		r.requests.Finish(b, r.requestLine(at, place))
	case bytes.Contains(b, ncclLine) && r.ofNCCL(b), r.event(b, at, place):
		r.read++
	case errortext.IsTraceback(b):
		r.read++
		r.raise(series.Instant{Time: at, Kind: series.Traceback, Place: place, Line: uint32(r.line), Count: 1}, "", r.process)
	case errortext.IsErrorLevel(level) && r.complain(b, at, place, ""):
		r.read++
	default:
		r.unknownOf(level, b, at, place, "")
	}
}

// requestLine returns the current line for the readers of requests.
func (r *reader) requestLine(at trace.Time, place int32) requestlog.Line {
	return requestlog.Line{At: at, Place: place, N: uint32(r.line)}
}

// engineLine reads a line of vLLM's statistics that another program logs.
func (r *reader) engineLine(b []byte, at trace.Time, place int32) {
	p := r.f.Set.Places[place]
	if n, ok := logline.Digits(b[min(len(b), len("Engine ")):], 3); ok && b[0] == 'E' {
		p.Rank.DP, b = int16(n), bytes.TrimLeft(b[len("Engine 000"):], ": ")
	}
	if !r.statistics(b, at, r.f.Place(p)) {
		r.unknown(b)
		return
	}
	r.engine = "vLLM"
}

// trouble are parts of words in lines about trouble, whoever writes them.
var trouble = logline.NewWordSet("rror", "RROR", "ailed", "ailure", "xception", "imeout", "imed out", "bort", "atal", "FATAL", "illed", "OOM", "ut of memory", "anic", "efused", "orrupt", "raceback",
	"egmentation", "rashed", "isconnect")

// soundsWorse are in harmless lines with such words: warnings of Python, models that lack a library, as SGLang tries all
// models, and Triton 3.1 about its own passes. A watchdog's exception is reported elsewhere.
var soundsWorse = logline.NewWordSet("Warning: ", "[DEPRECATED]", "Ignore import error when loading ", "CUDA kernel errors might be asynchronously reported", "Search for `cudaError", "Rectify the fault based on", "operation scheduled before its operands", "Exception (either an error or timeout) detected by watchdog")

// unknown reads a line that no other function uses. It ignores messages about starting, weights, or progress, and counts
// lines about trouble: this package lacks their kind.
func (r *reader) unknown(b []byte) {
	const looked = 4 << 10
	if b = b[:min(len(b), looked)]; trouble.In(b) != 0 && soundsWorse.In(b) == 0 {
		r.strange()
	}
}

// strange counts a line about unknown trouble.
func (r *reader) strange() {
	if r.other++; r.first == 0 {
		r.first = r.line
	}
}

// levels are the first letters of levels.
var levels = [256]bool{'I': true, 'W': true, 'E': true, 'C': true, 'D': true}

// unleveled removes the level and the source position from a line, "WARNING model_config.py:820: ".
func unleveled(b []byte) []byte {
	for _, level := range [...]string{"INFO ", "WARNING ", "WARN ", "ERROR ", "DEBUG ", "CRITICAL ", "WARNING: ", "ERROR: ", "CRITICAL: "} {
		if bytes.HasPrefix(b, []byte(level)) {
			rest := b[len(level):]
			if i := behindSource(rest[:min(len(rest), lookedAt)], ".rs:", ": "); i > 0 { // TGI's spans and modules, "router/src/infer.rs:588: "
				return rest[i:]
			}
			if i := bytes.Index(rest, colon); i > 0 && i < 80 && bytes.IndexByte(rest[:i], ' ') < 0 {
				return rest[i+2:]
			}
			return rest
		}
	}
	return b
}

// end sets the kind of the log, and reports what was read of it.
func (r *reader) end() {
	r.printed.End()
	for _, e := range r.raised {
		r.settle(e, e.unended())
	}
	r.explain()
	r.complaints.Tell(r.f)
	r.f.Date()
	if x := &r.asked; x.requests > 0 {
		r.f.Instant(series.Instant{Time: x.first, Kind: series.Note, Place: x.place, Line: uint32(x.line), Count: x.requests}, series.NoBatch)
	}
	if r.unserved.Count > 1 {
		r.f.Instant(r.unserved, "its discovery of servers finds none from then on")
	}
	for server, role := range r.roles {
		r.f.SetServer(server, role, r.engine)
	}
	src := r.f.Source()
	r.read += r.requests.Read
	src.Lines, src.Read, src.Other, src.FirstOther = int(r.line), r.read, r.other, int(r.first)
	src.OnlyRecords = r.rows.N > 0 && r.read == r.rows.N
	if n := r.requests.Damaged; n > 0 {
		r.f.Set.Diags.Add(trace.LogDamaged.Of(r.in.Name).Times(n))
	}
	if n := r.requests.Timeless; n > 0 {
		r.f.Set.Diags.Add(trace.RecordTimeless.Of(r.in.Name).Times(n))
	}
	r.dated()
	if r.untimed > 0 {
		r.f.Set.Diags.Add(trace.LogNoTime.Of(r.in.Name, r.untimed))
	}
	if r.read == 0 && r.rows.N == 0 && r.untimed == 0 {
		r.f.Set.Diags.Add(trace.LogEmpty.Of(r.in.Name, r.line))
	}
}
