package serverlog

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/format/serverlog/errortext"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A raised is an exception whose traceback is not complete.
type raised struct {
	x      series.Instant
	who    string // "Scheduler: ", or "" for the server itself
	from   string // the process that prints it, if its lines name it; else ""
	frames []string
	// ignored: Python prints it, and continues ("Exception ignored in: <function Socket.__del__>").
	ignored bool
	// sofar is its last line, if the next one may complete it: because it ends in a colon, or because it reports that a task
	// was canceled, and the next exception of the chain has the reason. "" means that the last line has not come yet.
	sofar string
	// because is what its first line says about its last one; "" is nothing.
	because string
	// code means that the previous line was a frame without indentation: the line of code of the frame follows.
	code bool
	// canceled means that a task was canceled, and chained that a line announced the next exception of the chain.
	canceled, chained bool
}

// maxFrames is the number of frames kept of a stack, innermost first: the outer ones are always the same.
const maxFrames = 12

// exception begins a traceback. The type of the exception comes after the frames: the instant is added then.
func (r *reader) exception(b []byte, x *series.Instant) string {
	who := "the server"
	if i := bytes.Index(b, []byte(" hit an exception")); i > 0 {
		who = logline.Word(b[bytes.LastIndexByte(b[:i], ' ')+1 : i])
	}
	r.raise(*x, who, r.process)
	return ""
}

// raise begins an exception whose traceback follows.
func (r *reader) raise(x series.Instant, who, from string) {
	const most = 64
	if len(r.raised) == most {
		r.settle(r.raised[0], r.raised[0].unended())
		r.raised = r.raised[1:]
	}
	if who != "" {
		who += ": "
	}
	for i := len(r.raised) - 1; i >= 0; i-- {
		if e := r.raised[i]; e.from == from && e.sofar != "" {
			r.close(i, e.sofar)
		}
	}
	r.raised = append(r.raised, &raised{x: x, who: who, from: from})
}

// unended is the last line of an exception as far as the log has it.
func (e *raised) unended() string { return cmp.Or(e.sofar, e.because, "an exception without an end") }

// ofPool are in messages about a full pool of the server that is called memory: no device ran out of memory.
var ofPool = logline.NewWordSet("ecode out of memory", "refill out of memory", "alloc_req_slots")

// unstamped reads a line without a stamp: a piece of a traceback or of a stack, or anything else. The text around it may
// name the process.
func (r *reader) unstamped(b, around []byte) bool {
	if r.printed.Spied(b, r.spy.Time) || r.printed.Unheaded(b) {
		return true
	}
	r.printed.Mismatch(b) // also an exception
	b, grouped := errortext.CutGroupBar(b)
	if r.printed.LastWords(b, r.now) || r.ofNCCL(b) {
		return true
	}
	process, _ := logline.Process(around)
	from := string(process)
	r.comesFrom(around)
	n, b, ofRank := logline.CutRank(b)
	if ofRank {
		from = fmt.Sprintf("%s[rank%d]", from, n)
		if p := r.f.Set.Places[r.spot()]; rankOfWorker(string(process)) == trace.NoRank {
			p.Rank = trace.NoRank
			p.Rank.Global = n
			r.here = r.f.Place(p)
		}
	}
	if from == "" && len(r.raised) == 1 { // only the first line of the traceback names its process
		from = r.raised[0].from
	}
	r.within(b, from, series.Instant{Time: r.now, Place: r.spot()})
	if r.traced(b, from) || r.dumped(b) {
		return true
	}
	if (bytes.HasPrefix(b, ofRaylet) || bytes.HasPrefix(b, deadBecause) || bytes.HasPrefix(b, ofSlurm) || bytes.HasPrefix(b, isServing) || bytes.HasPrefix(b, ofUvicorn) || bytes.Contains(b, ofTransfer) || bytes.Contains(b, ofTorchrun) || bytes.Contains(b, uncaught)) && r.event(b, r.now, r.unranked()) {
		return true
	}
	if r.alone && bytes.Contains(b, noMemory) {
		return r.event(b, r.now, r.spot())
	}
	if bytes.HasPrefix(b, []byte("Exception ignored in")) {
		r.raise(series.Instant{Time: r.now, Kind: series.Traceback, Place: r.spot(), Line: uint32(r.line), Count: 1}, "", from)
		r.raised[len(r.raised)-1].ignored = true
		return true
	}
	if bytes.HasPrefix(b, []byte("Exception in thread ")) || bytes.HasPrefix(b, []byte("Unexpected transfer worker error for room")) { // its traceback follows
		return true
	}
	whose := r.unranked()
	if rankOfWorker(from) != trace.NoRank {
		whose = r.spot()
	}
	if r.died(b) || r.failedOf(b) || r.lastOf(b, r.now, whose) {
		return true
	}
	if errortext.IsTraceback(b) {
		kind := series.Traceback
		if r.alone || ofRank {
			kind = series.Exception
		}
		r.raise(series.Instant{Time: r.now, Kind: kind, Place: r.spot(), Line: uint32(r.line), Count: 1}, "", from)
		return true
	}
	return grouped
}

// ofNCCL reads a line of NCCL, which puts a stamp before its warnings since 2.26.
func (r *reader) ofNCCL(b []byte) bool {
	warning, ok := r.printed.NCCL(b)
	if text, failed := logline.FailureOf(b, warning); warning != nil && failed {
		r.f.Instant(series.Instant{Time: r.now, Kind: series.Communication, Place: r.unranked(), Line: uint32(r.line), Count: 1}, logline.SaysNCCL+text)
	}
	return ok
}

// within begins an exception whose traceback starts in the middle, when the first line of a process is a part of one.
func (r *reader) within(b []byte, from string, x series.Instant) {
	piece := bytes.HasPrefix(b, []byte("  File ")) && errortext.FrameOf(b) != "" || r.line == 1 && bytes.HasPrefix(b, []byte("    ")) && len(bytes.TrimSpace(b)) > 0 && !logline.IsSpyFrame(b)
	if r.begun(from) || !piece || r.line > 1 && from == "" || slices.ContainsFunc(r.raised, func(e *raised) bool { return e.from == from }) {
		return
	}
	x.Kind, x.Line, x.Count = kindOf(from), uint32(r.line), 1
	r.raise(x, engineWords[logline.Word([]byte(from))], from)
}

// begun reports whether the log already has a line of a process, and records that it has.
func (r *reader) begun(process string) bool {
	const most = 1024
	if r.began[process] || len(r.began) == most {
		return true
	}
	r.began[process] = true
	return false
}

// traced reads a line of a traceback that a process has begun.
func (r *reader) traced(b []byte, from string) bool {
	at := -1 // the first of its exceptions, whose last line comes first
	for i, e := range slices.Backward(r.raised) {
		if e.from == from {
			at = i
		}
	}
	if at < 0 {
		return false
	}
	trimmed := bytes.HasPrefix(b, []byte(`File "`)) // some log stores trim lines
	code := r.raised[at].code
	r.raised[at].code = trimmed
	switch {
	case len(b) == 0:
		return true
	case bytes.HasPrefix(b, []byte("  File ")), trimmed:
		last := len(r.raised) - 1
		for r.raised[last].from != from {
			last--
		}
		if f := errortext.FrameOf(b); f != "" {
			r.raised[last].frames = append(r.raised[last].frames, f)
		}
		return true
	case errortext.IsTraceback(b):
		return r.raised[at].sofar == "" || r.raised[at].chained
	case b[0] == ' ', bytes.HasPrefix(b, ofRemote):
		return true
	}
	first := r.raised[at]
	name := errortext.RaisedName(bytes.TrimRight(b, " "))
	switch {
	case name == "" && code:
		return true
	case name == "" && first.sofar != "":
		return r.follows(at, b)
	case name == "":
		return false
	case strings.HasSuffix(name, "ExceptionGroup"), bytes.HasSuffix(b, []byte(": Traceback (most recent call last):")): // the exceptions inside of it follow
		return true
	}
	text := errortext.ExceptionText(name, b)
	_, message, said := bytes.Cut(b, colon)
	if said && text == name && (errortext.StartsUp(first.frames) || errortext.ChecksItself(name, first.frames) || errortext.InStep(name, first.frames)) {
		text += ": " + logline.Message(message)
	}
	if bytes.Contains(b, []byte("out of memory")) && first.x.Kind == series.Exception && ofPool.In(b) == 0 {
		first.x.Kind = series.OutOfMemory
	}
	if kind, of := errortext.ExceptionMeaning(name, message); of != "" {
		first.x.Kind, text = kind, of
	}
	if first.canceled = strings.HasSuffix(name, "CancelledError"); first.canceled || text != name && bytes.HasSuffix(bytes.TrimRight(b, " "), colon[:1]) {
		first.sofar, first.chained = text, false
		return true
	}
	r.close(at, text)
	return true
}

// follows reads the line after the last one of an exception that needs it, and reports whether it does.
func (r *reader) follows(at int, b []byte) bool {
	e := r.raised[at]
	switch {
	case e.canceled && errortext.Chains(b):
		e.chained = true
		return true
	case e.canceled, errortext.Chains(b), logline.IsStamp(b): // a log line is no part of it
		r.close(at, e.sofar)
		return false
	case soundsWorse.In(b) == 0:
		r.close(at, e.sofar+" "+logline.Message(b))
	}
	return true
}

// close ends an exception, with its last line.
func (r *reader) close(at int, text string) {
	e := r.raised[at]
	r.raised = slices.Delete(r.raised, at, at+1)
	if !(e.x.Kind == series.Traceback && r.stopping) { // all processes raise something at shutdown
		r.settle(e, text)
	}
}

// uncaught is in the line in which RunPod's worker reports an exception, which ends it.
var uncaught = []byte("Uncaught exception | <class '")

// ofTorchrun is in a line about a process that torchrun started, which has no stamp until PyTorch 2.3.
var ofTorchrun = []byte("multiprocessing.api:failed (exitcode: ")

// ofRemote is the beginning of the line between the traceback of the caller of a Ray task and that of the task.
var ofRemote = []byte("ray.exceptions.RayTaskError(")

// tracedBehind reads a line of a traceback in which each line has a stamp.
func (r *reader) tracedBehind(said []byte) bool {
	return len(r.raised) > 0 && (bytes.HasPrefix(said, []byte("  ")) || errortext.RaisedName(said) != "") && r.traced(said, r.process)
}

// lastOf reads the last line of an exception without any other line, from a module, "nixl._bindings.nixlBackendError: ..",
// or with a known message: it is unknown whether the process ended.
func (r *reader) lastOf(b []byte, at trace.Time, place int32) bool {
	name := errortext.ExceptionName(b)
	if name == "" {
		return false
	}
	text := errortext.ExceptionText(name, b)
	if text == name && !strings.Contains(name, ".") {
		return false
	}
	r.f.Instant(series.Instant{Time: at, Kind: series.Traceback, Place: place, Line: uint32(r.line), Count: 1}, strings.TrimSuffix(text, "."))
	return true
}

// settle adds an exception.
func (r *reader) settle(e *raised, text string) {
	if e.ignored {
		return
	}
	frames := e.frames[max(0, len(e.frames)-maxFrames):]
	turned := make([]string, 0, len(frames))
	for i := len(frames) - 1; i >= 0; i-- {
		turned = append(turned, frames[i])
	}
	e.x.Stack = r.f.Set.Syms.Intern(strings.Join(turned, "\n"))
	r.f.Instant(e.x, e.who+strings.TrimSuffix(text, "."))
}

// stacks records who ran py-spy, and when: its dump follows, line by line.
func (r *reader) stacks(_ []byte, x *series.Instant) string {
	r.spy = *x
	return ""
}

// spied adds the position of the main thread of a process.
func (r *reader) spied(d *recorder.FlightDump) {
	if d.Of == trace.NoRank && r.spy.Line > 0 {
		d.Of = r.f.Set.Places[r.spy.Place].Rank
	}
	t := d.Threads[0]
	if t.Stack < 0 || r.spy.Line == 0 {
		return
	}
	syms := r.f.Set.Syms
	var frames []string
	stack := d.Stacks[t.Stack]
	if python := slices.IndexFunc(stack, func(f recorder.Frame) bool { return f.Line > 0 }); python > 0 { // what it calls is of libraries
		stack = stack[python:]
	}
	for _, f := range stack {
		at := syms.Name(f.File)
		if f.Line > 0 {
			at += ":" + strconv.Itoa(int(f.Line))
		}
		if frames = append(frames, syms.Name(f.Name)+" ("+at+")"); len(frames) == maxFrames {
			break
		}
	}
	x := r.spy
	x.Kind, x.Stack = series.Timeout, syms.Intern(strings.Join(frames, "\n"))
	r.f.Instant(x, "its main thread is in "+frames[0])
}

// dumped reads a line of the stacks printed by Python's faulthandler, innermost frame first and the main thread last, and
// keeps the position of the last thread.
func (r *reader) dumped(b []byte) bool {
	if stack := bytes.HasPrefix(b, []byte("Thread 0x")) || bytes.HasPrefix(b, []byte("Current thread 0x")); stack && bytes.HasSuffix(b, []byte("(most recent call first):")) {
		r.stands = ""
		return true
	}
	file, ok := bytes.CutPrefix(b, []byte(`  File "`))
	path, at, _ := bytes.Cut(file, []byte(`", line `))
	line, name, found := bytes.Cut(at, []byte(" in "))
	if !ok || !found || bytes.HasSuffix(line, []byte(",")) { // as in a traceback
		return bytes.HasPrefix(b, []byte("Timeout (")) && bytes.HasSuffix(b, []byte(")!"))
	}
	if r.stands == "" {
		r.stands = fmt.Sprintf("%s (%s:%s)", name, path[bytes.LastIndexByte(path, '/')+1:], line)
	}
	return true
}

// slowPass reads which iteration of a scheduler's loop took longer than SGLANG_DEBUG_SLOW_SCHEDULER_PASS_MS. The stack at
// its end was printed before the line.
func slowPass(r *reader, b []byte, x *series.Instant) string {
	_, rest, _ := bytes.Cut(b, []byte("slow scheduler pass: "))
	name, _, _ := bytes.Cut(rest, []byte(" took "))
	ms, ok := logline.After(rest, " took ")
	if !ok {
		return "a turn of its loop took long"
	}
	x.Time -= trace.Time(ms * 1e6) // it is logged afterward
	text := fmt.Sprintf("%s took %.3g s in one turn of its loop", name, ms/1e3)
	if r.stands != "" {
		text += ", and stood in " + r.stands
	}
	r.stands = ""
	return text
}
