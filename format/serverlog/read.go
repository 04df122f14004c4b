package serverlog

import (
	"bytes"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A reader reads one log, line by line. What it holds does not grow with the log.
type reader struct {
	in    *format.Input
	f     *series.Filler
	rows  *spantable.RequestFiller
	base  string // what the server is called, by its file
	line  int64  // that is read
	read  int    // lines of which something was kept
	other int    // lines that tell of trouble, which nothing here knows
	first int64  // of these; 0 is none

	stamps   logline.Stamper
	around   *logline.Unwrapper
	unquoted []byte

	places   map[string]int32
	placeKey []byte   // of places, used again
	last     struct { // of the line before
		header []byte
		server int32
		place  int32
	}
	servers    map[wrappedServer]int32
	lastServer struct { // of the line before; id is plus one
		of wrappedServer
		id int32
	}
	layouts [2][]layoutField             // of the last line of a decode and of a prefill batch
	ids     [][series.KnownMetrics]int32 // of series, plus one, by place
	roles   map[int32]string             // of servers
	engine  string

	now      trace.Time   // of the last line with a stamp; before the first one, that one's; 0 without any
	here     int32        // whose the last line with a stamp was; noPlace before the first one
	told     series.Place // whose batches vLLM told of last, at toldAt
	toldAt   trace.Time
	nested   bool   // the line was in a record
	asks     bool   // the line before announces what NCCL says of an error
	alone    bool   // it is no log, but what a program printed as it ended: nothing tells when
	process  string // that wrote the line, as vLLM's and Ray's say; "" is not told
	raised   []*raised
	began    map[string]bool           // processes that printed a line
	printed  *logline.CollectiveReader // of what NCCL, its watchdog, and py-spy print
	spy      series.Instant            // when and by whom py-spy was run last; Line is 0 before
	stands   string                    // where the last stack that faulthandler printed stands
	survives struct {                  // the process that printed a failure which it survives, and when
		process string
		at      trace.Time
	}
	timedOut    bool                    // a collective did
	asked       asked                   // since the last batch
	rooms       map[string]transferring // by what failed, and the room
	advised     advice                  // of transfers that were given up
	complaints  complaints
	lost        bool // a line tells of a transfer that failed
	retracted   map[dpRank]retracted
	preemptions float64
	stopping    bool
	headYear    int // that the first stamps of the log name; 0 is not told
	year        int // of stamps without one; 0 is not known yet
	damaged     int // pieces of lines that others wrote over
	timeless    int // records that say only how long, and not when
	untimed     int // lines of batches without a stamp
	undated     undated
}

// A wrappedServer is what a wrapping says of a server.
type wrappedServer struct{ host, name string }

func newReader(in *format.Input, opt *format.Options) *reader {
	f := opt.Series.Fill(in.Name, "server log")
	r := &reader{in: in, f: f, rows: opt.Records.Fill(f), base: serverName(in.Name), around: logline.New(), printed: logline.NewCollectiveReader(opt.Flight, in.Name, len(opt.Series.Sources)-1),
		places: map[string]int32{}, servers: map[wrappedServer]int32{}, roles: map[int32]string{}, rooms: map[string]transferring{}, complaints: newComplaints(opt.Series), began: map[string]bool{}, retracted: map[dpRank]retracted{}}
	r.printed.Spy.Done = r.spied
	r.here = noPlace
	return r
}

// noPlace is the place of no line.
const noPlace = -1

// begin looks for the first stamp of a log: lines before it are of about that time, and stamps without a year of that
// year.
func (r *reader) begin(head []byte) {
	i := stampIn(head)
	if i < 0 {
		r.headYear = yearIn(head)
		return
	}
	r.headYear, _ = logline.Digits(head[i+1:], 4)
	if i == 0 || head[i-1] == '\n' { // and nothing around it tells a zone
		r.now, _ = r.stamps.Read(head[i+1:])
	}
}

// yearIn returns the year of the first stamp of a head that has one, wherever it stands in a line; 0 without any.
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

// spot is whose a line without a stamp is: that of the line before it, or the server's.
func (r *reader) spot() int32 {
	if r.here == noPlace {
		r.here = r.placeOf(nil, logline.Wrapping{})
	}
	return r.here
}

// unranked is the server of [reader.spot]: any of its processes may have written the line.
func (r *reader) unranked() int32 {
	p := r.f.Set.Places[r.spot()]
	p.Rank = trace.NoRank
	return r.f.Place(p)
}

// rotated is what rotation and compression add to the name of a log. A number behind a dash before
// them is none: pods of a set are called decode-0 and decode-1.
var rotated = regexp.MustCompile(`(?:[-.](?:20\d{6}(?:[-_]?\d{2,6})?|\d{4}-\d\d-\d\d(?:[-_T]?\d\d(?:[-_:]?\d\d){0,2})?|gz|zst|(?:log|txt|out|err|jsonl?)(?:-\d{1,3})?)|\.\d{1,3})+$`)

// serverName is what a server is called by the path of its log: pieces of one log that was rotated
// have one name. The set shortens it.
func serverName(path string) string {
	path = filepath.ToSlash(path)
	dir, name := filepath.Split(path)
	if short := rotated.ReplaceAllString(name, ""); short != "" {
		name = short
	}
	if dir != "" && anyServers.MatchString(name) {
		return strings.TrimRight(dir, "/")
	}
	return dir + name
}

// anyServers are names that the logs of all servers have: their folders tell them apart.
var anyServers = regexp.MustCompile(`^(?:sglang-request-metrics|(?:sglang|vllm|server|worker)?[-_.]?(?:server|stdout|stderr|out|err|log|current)?|\d+)$`)

// take reads one line, in whatever it is wrapped.
func (r *reader) take(b []byte) {
	b = r.around.Bare(b)
	r.f.Line(r.line)
	var w logline.Wrapping
	at := 0
	if len(b) > 0 && b[0] == '{' && recordOf(b) == noRecord && (r.inJSON(b) || r.answer(b)) {
		return
	}
	if len(b) < 22 || b[0] != '[' || !logline.IsStamp(b[1:]) {
		if at = stampIn(b); at < 0 {
			r.without(b, w)
			return
		}
		w = r.around.Unwrap(b[:at])
	}
	if r.process = r.wrapped(b[:at]); r.process != "" {
		r.begun(r.process)
	}
	r.stamped(b[at+1:], w)
}

// wrapped returns the process that what stands before a line names, and notes what that is, for lines without a
// stamp.
func (r *reader) wrapped(before []byte) string {
	if len(before) == 0 {
		return ""
	}
	process, outer := logline.Process(before)
	r.around.Learn(outer)
	return string(process)
}

// stampIn returns where the stamp of a line begins, "[2026-", or -1.
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

// stamped reads a line behind the bracket before its stamp.
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
	if level := rayLevel(header); level != nil {
		_, said, _ := bytes.Cut(b[end+1:], colon) // behind "node_manager.cc:170: "
		r.leveled(said, level, at, r.placeOf(nil, w))
		return
	}
	r.body(bytes.TrimLeft(b[end+1:], " "), at, r.placeOf(header, w))
}

// rayLevel returns the level of a line of Ray's C++ code, "[2026-08-17 20:53:20,907 W 149 199] ", by what follows its stamp; nil of any other.
func rayLevel(header []byte) []byte {
	if len(header) < 4 || header[0] != ' ' || header[2] != ' ' || header[3] < '0' || header[3] > '9' {
		return nil
	}
	switch header[1] {
	case 'W':
		return []byte("WARNING")
	case 'E', 'C', 'F':
		return []byte("ERROR")
	case 'I', 'D':
		return []byte("INFO")
	}
	return nil
}

// place returns the time of a line. A stamp with a zone that whatever collected the log added
// within two seconds is as right, and exact; else it says which zone the line's own is in.
func (r *reader) place(stamp trace.Time, w logline.Wrapping, grain int64) trace.Time {
	zone := &r.f.Source().Zone
	if w.At == 0 {
		zone.Local = zone.By == ""
		r.f.Within(grain)
		if zone.By != "" { // of the line before, which had one
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

// placeOf returns the place that a header names, " DP4 TP0 EP0".
func (r *reader) placeOf(header []byte, w logline.Wrapping) int32 {
	server := r.server(w)
	if r.last.server == server+1 && bytes.Equal(r.last.header, header) {
		return r.last.place
	}
	key := append(append(r.placeKey[:0], byte(server), byte(server>>8), byte(server>>16)), header...)
	r.placeKey = key
	place, ok := r.places[string(key)]
	if !ok {
		place = r.f.Place(series.Place{Server: server, Rank: rankOf(header), GPU: series.NoGPU})
		if len(r.places) < 1<<14 {
			r.places[string(key)] = place
		}
	}
	r.last.header, r.last.server, r.last.place = append(r.last.header[:0], header...), server+1, place
	return place
}

// rankOf reads " DP4 TP0 EP0"; what else stands there is no part of a rank.
func rankOf(header []byte) trace.Rank {
	rank := trace.NoRank
	for len(header) > 0 {
		var piece []byte
		piece, header, _ = bytes.Cut(bytes.TrimLeft(header, " "), []byte(" "))
		if len(piece) < 3 {
			continue
		}
		n, ok := logline.Digits(piece[2:], len(piece)-2)
		if !ok || n > math.MaxInt16 {
			continue
		}
		switch string(piece[:2]) {
		case "DP":
			rank.DP = int16(n)
		case "PP":
			rank.PP = int16(n)
		case "TP":
			rank.TP = int16(n)
		case "EP":
			rank.EP = int16(n)
		}
	}
	return rank
}

// server returns the server that a line is of.
func (r *reader) server(w logline.Wrapping) int32 {
	key := wrappedServer{w.Host, w.Server}
	if l := &r.lastServer; l.id > 0 && l.of == key {
		return l.id - 1
	}
	id, ok := r.servers[key]
	if !ok {
		name := r.base
		if w.Server != "" {
			name = w.Server
		}
		id = r.f.Server(series.Server{Host: w.Host, Name: name})
		r.servers[key] = id
	}
	r.lastServer.of, r.lastServer.id = key, id+1
	return id
}

// roleIs says what the server of a place does.
func (r *reader) roleIs(place int32, role string) {
	server := r.f.Set.Places[place].Server
	if r.roles[server] != role {
		r.roles[server] = role
	}
}

// batches says that the server of a place runs batches: one that does both without a word of
// disaggregation is unified.
func (r *reader) batches(place int32) {
	server := r.f.Set.Places[place].Server
	if _, ok := r.roles[server]; !ok {
		r.roles[server] = "unified"
	}
}

// series returns the series of a metric at a place.
func (r *reader) series(metric series.MetricID, place int32) int32 {
	for int(place) >= len(r.ids) {
		r.ids = append(r.ids, [series.KnownMetrics]int32{})
	}
	id := &r.ids[place][metric]
	if *id == 0 {
		*id = r.f.Series(metric, place) + 1
	}
	return *id - 1
}

var (
	prefillBatch = []byte("Prefill batch")
	decodeBatch  = []byte("Decode batch")
	accessLine   = []byte("INFO:     ")
	requestStats = []byte("ReqTimeStats(")
)

// body reads what follows a stamp.
func (r *reader) body(b []byte, at trace.Time, place int32) {
	level := logline.LevelOf(b)
	switch {
	case len(b) > 0 && levels[b[0]]:
		b = unleveled(b)
	case len(b) > 0 && b[0] == '[': // "[metrics.py:424][INFO]: ", of a format of one's own
		b = message(b)
	}
	r.leveled(b, level, at, place)
}

// leveled reads what follows a stamp and a level; nil is no level.
func (r *reader) leveled(b, level []byte, at trace.Time, place int32) {
	r.f.Saw(at)
	r.now, r.here = at, place
	switch {
	case bytes.HasPrefix(b, decodeBatch):
		r.batch(b[len(decodeBatch):], at, place, false)
	case bytes.HasPrefix(b, prefillBatch):
		r.batch(b[len(prefillBatch):], at, place, true)
	case bytes.HasPrefix(b, requestStats):
		r.requestStats(b[len(requestStats):], at, place)
	case isAccess(b):
		r.access(b, at, place)
	case bytes.HasPrefix(b, []byte("Engine ")) || bytes.HasPrefix(b, []byte("Avg prompt throughput")): // vLLM under Dynamo
		r.engineLine(b, at, place)
	case len(b) > 0 && b[0] == '{':
		r.json(b, at, place)
	case bytes.HasPrefix(b, []byte("Receive: obj=")), bytes.HasPrefix(b, []byte("Finish: obj=")):
		// Python's text of a request, with its prompt
	case r.event(b, at, place):
		r.read++
	case isTraceback(b):
		r.read++
		r.raise(series.Instant{Time: at, Kind: series.Traceback, Place: place, Line: uint32(r.line), Count: 1}, "", r.process)
	case isError(level) && r.complain(b, at, place, ""):
		r.read++
	default:
		r.unknownOf(level, b, at, place, "")
	}
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

// trouble are pieces of words that lines have that tell of trouble, whoever writes them.
var trouble = newWordSet("rror", "RROR", "ailed", "ailure", "xception", "imeout", "imed out", "bort", "atal", "FATAL", "illed", "OOM", "ut of memory", "anic", "efused", "orrupt", "raceback",
	"egmentation", "rashed", "isconnect")

// soundsWorse are in lines that sound worse than they are: warnings of Python, and models that lack a
// library, which SGLang tries all of.
var soundsWorse = newWordSet("Warning: ", "Ignore import error when loading ", "CUDA kernel errors might be asynchronously reported", "Search for `cudaError", "Rectify the fault based on")

// unknown reads a line of which nothing is kept: what the server or its libraries say of their start,
// of weights, or of progress is passed over. One that tells of trouble is of a kind that is missing here.
func (r *reader) unknown(b []byte) {
	const looked = 4 << 10
	if b = b[:min(len(b), looked)]; trouble.in(b) != 0 && soundsWorse.in(b) == 0 {
		r.strange()
	}
}

// strange counts a line that tells of trouble in words that nothing here knows.
func (r *reader) strange() {
	if r.other++; r.first == 0 {
		r.first = r.line
	}
}

// levels are what words for levels begin with.
var levels = [256]bool{'I': true, 'W': true, 'E': true, 'C': true, 'D': true}

// unleveled removes the level and the place in the source from a line, "WARNING model_config.py:820: ".
func unleveled(b []byte) []byte {
	for _, level := range [...]string{"INFO ", "WARNING ", "WARN ", "ERROR ", "DEBUG ", "CRITICAL "} {
		if bytes.HasPrefix(b, []byte(level)) {
			rest := b[len(level):]
			if i := bytes.Index(rest, colon); i > 0 && i < 80 && bytes.IndexByte(rest[:i], ' ') < 0 {
				return rest[i+2:]
			}
			return rest
		}
	}
	return b
}

// end says what the log is of, and what of it was read.
func (r *reader) end() {
	r.printed.End()
	for _, e := range r.raised {
		r.settle(e, "an exception without an end")
	}
	r.explain()
	r.complaints.tell(r.f)
	r.f.Date()
	if x := &r.asked; x.requests > 0 {
		r.f.Instant(series.Instant{Time: x.first, Kind: series.Note, Place: x.place, Line: uint32(x.line), Count: x.requests}, series.NoBatch)
	}
	for server, role := range r.roles {
		r.f.SetServer(server, role, r.engine)
	}
	src := r.f.Source()
	src.Lines, src.Read, src.Other, src.FirstOther = int(r.line), r.read, r.other, int(r.first)
	src.OnlyRecords = r.rows.N > 0 && r.read == r.rows.N
	if r.damaged > 0 {
		r.f.Set.Diags.Add(trace.LogDamaged.Of(r.in.Name).Times(r.damaged))
	}
	if r.timeless > 0 {
		r.f.Set.Diags.Add(trace.RecordTimeless.Of(r.in.Name).Times(r.timeless))
	}
	r.dated()
	if r.untimed > 0 {
		r.f.Set.Diags.Add(trace.LogNoTime.Of(r.in.Name, r.untimed))
	}
	if r.read == 0 && r.rows.N == 0 && r.untimed == 0 {
		r.f.Set.Diags.Add(trace.LogEmpty.Of(r.in.Name, r.line))
	}
}
