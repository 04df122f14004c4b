package torchdump

import (
	"bytes"
	"time"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Log reads logs with the output of NCCL and PyTorch's ProcessGroupNCCL: with
// NCCL_DEBUG=INFO, the last collectives that ranks entered in each communicator (NCCL_DEBUG_SUBSYS=COLL),
// and the reports of PyTorch's watchdog about timeouts. The log of a server has the same lines among its own:
// package serverlog reads these. Package logline parses the lines.
//
// # What is odd
//
//   - NCCL's INFO lines have no time; its WARN lines have a local one.
//   - NCCL_DEBUG_FILE writes one file a process, otherwise all ranks are in one.
//   - Lines of the watchdog have a local time without a year.
var Log = &format.Format{
	Name:   "NCCL log",
	Noun:   "NCCL log",
	Doc:    "collectives by rank and communicator, as NCCL prints them with NCCL_DEBUG=INFO; what PyTorch's watchdog prints when one times out",
	For:    "'sgtrace report'",
	Sniff:  isLog,
	Index:  indexLog,
	Series: true,
	Text:   true,
}

// logSign matches a line of NCCL, or of PyTorch's watchdog.
var logSign = lazyregexp.New(`[^\s:]+:\d+:\d+ \[\d+\] (?:\S+ )?NCCL (?:INFO|WARN) |` +
	`\[[EF](?:\d{3,4} \d\d:\d\d:\d\d\.\d+)? ProcessGroupNCCL\.cpp:\d+\] `)

// isLog searches for words of a line before it tries the expression: at every byte of files in other formats, that would
// take longer than all other sniffing.
func isLog(head []byte) bool {
	return bytes.Contains(head, []byte("Detected mismatch between collectives on ranks. ")) || bytes.Contains(head, lastWords) || (bytes.Contains(head, []byte("NCCL INFO ")) || bytes.Contains(head, []byte("NCCL WARN ")) || bytes.Contains(head, []byte("ProcessGroupNCCL.cpp:"))) &&
		logSign.Match(head)
}

// lastWords are in the C++ runtime's message about the exception that ended a rank.
var lastWords = []byte("] Watchdog caught collective operation timeout: WorkNCCL(")

// A logReader reads one log.
type logReader struct {
	*logline.CollectiveReader
	f      *series.Filler
	around *logline.Unwrapper
	stamps logline.Stamper
	path   string
	year   int
	place  int32
	name   string
	read   int

	timedOut bool // a line reports a collective that timed out
}

// indexLog reads a log.
func indexLog(in *format.Input, opt *format.Options) (*format.Source, error) {
	content, err := in.Open()
	if err != nil {
		return nil, err
	}
	f := opt.Series.Fill(in.Name, "NCCL log")
	r := &logReader{f: f, around: logline.New(), path: in.Path, name: in.Name, CollectiveReader: logline.NewCollectiveReader(opt.Flight, in.Name, len(opt.Series.Sources)-1)}
	r.place = f.Place(series.Place{Server: f.Server(series.Server{Name: in.Name}), Rank: trace.NoRank, GPU: series.NoGPU})
	src := f.Source()
	src.Bytes, err = logline.Read(content, in.Name, opt.Diags, func(b []byte, n int64) {
		src.Lines = int(n)
		r.take(b, n)
	})
	src.Read, src.Other = r.read, src.Lines-r.read
	r.End()
	return &format.Source{}, err
}

// take reads a line.
func (r *logReader) take(b []byte, n int64) {
	b = r.around.Bare(b)
	if warning, ok := r.NCCL(b); ok {
		r.read++
		if warning != nil {
			r.instant(b, r.around.Unwrap(b), warning, n)
		}
		return
	}
	if g, rest, ok := logline.GlogOf(b); ok {
		if at := r.at(&g, r.around.Unwrap(b)); r.Watchdog(rest, g.Rank, at) {
			r.f.Saw(at)
			r.read++
			r.timedOut = r.timedOut || bytes.Contains(rest, timedOut) || bytes.Contains(rest, []byte(logline.TimedOut))
			switch {
			case bytes.Contains(rest, []byte(logline.TimedOut)):
				r.of(g.Rank, series.Instant{Time: at, Kind: series.Timeout, Line: uint32(n), Count: 1}, logline.SaysTimedOut)
			case bytes.Contains(rest, []byte(logline.Failed)) && !r.timedOut:
				r.of(g.Rank, series.Instant{Time: at, Kind: series.Communication, Line: uint32(n), Count: 1}, logline.SaysFailed(rest))
			}
		}
		return
	}
	if r.Spied(b, 0) || r.LastWords(b, 0) || r.Unheaded(b) || r.Mismatch(b) {
		r.read++
	}
}

// timedOut is in a line about a collective that timed out: it identifies the collective, and later lines repeat it.
var timedOut = []byte("Watchdog caught collective operation timeout")

// of adds an instant of a rank.
func (r *logReader) of(global int32, x series.Instant, text string) {
	rank := trace.NoRank
	rank.Global = max(rank.Global, global)
	x.Place = r.f.Place(series.Place{Server: r.f.Set.Places[r.place].Server, Rank: rank, GPU: series.NoGPU})
	r.f.Instant(x, text)
}

// at returns the time of a line with the head of PyTorch's C++ code; 0 is unknown.
func (r *logReader) at(g *logline.Glog, w logline.Wrapping) trace.Time {
	if g.Month == 0 {
		return 0
	}
	if r.year == 0 {
		r.year = logline.LastYear(r.path, time.Month(g.Month), g.Day)
		r.f.Set.Diags.Add(trace.LogNoYear.Of(r.name, r.year))
	}
	at := g.Time(r.year)
	zone := &r.f.Source().Zone
	zone.Local = true
	if w.At != 0 {
		zone.Beside(at, w.At)
	}
	return at
}

// instant adds a warning of NCCL, "[2026-03-03 12:11:38] host:pid:tid [1] transport/net_ib.cc:2453 NCCL WARN ..".
func (r *logReader) instant(b []byte, w logline.Wrapping, warning []byte, n int64) {
	x := series.Instant{Kind: series.Note, Place: r.place, Line: uint32(n), Count: 1}
	if i := bytes.Index(b, []byte("[20")); i >= 0 {
		if at, ok := r.stamps.Read(b[i+1:]); ok {
			x.Time = at
			r.f.Source().Zone.Local = true
			if w.At != 0 {
				r.f.Source().Zone.Beside(at, w.At)
			}
		}
	}
	text, failed := logline.FailureOf(b, warning)
	if failed {
		x.Kind = series.Communication
	}
	r.f.Instant(x, logline.SaysNCCL+text)
}
