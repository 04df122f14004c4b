package logline

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// A Spy reads a dump of py-spy, line by line.
type Spy struct {
	// Done gets each dump after it was read; it may be nil.
	Done   func(*recorder.FlightDump)
	dump   *recorder.FlightDump // nil outside of a dump
	thread *recorder.Thread
	frames []recorder.Frame
	found  []*recorder.FlightDump
}

// maxFrames is the number of frames kept of a stack, innermost first, and maxThreads that of threads of a
// process.
const (
	maxFrames  = 64
	maxThreads = 512
)

var process = []byte("Process ")

// Spied parses a line of a dump of py-spy:
//
//	Process 163685: sglang::scheduler_TP3
//	Python v3.12.3 (/usr/bin/python3.12)
//
//	Thread 163685 (idle): "MainThread"
//	    run_batch (scheduler.py:3232)
//
// It reports whether the line belongs to a dump. at is the time of the line; a dump ends with the first line
// that does not belong to it.
func (r *CollectiveReader) Spied(b []byte, at trace.Time) bool {
	s := &r.Spy
	switch {
	case bytes.HasPrefix(b, process):
		pid, title, ok := bytes.Cut(b[len(process):], []byte(": "))
		n, err := strconv.ParseInt(string(pid), 10, 64)
		if !ok || err != nil {
			return false
		}
		r.closeSpy()
		s.dump = r.dump(recorder.PySpy, recorder.Unknown)
		s.dump.PID, s.dump.Title, s.dump.Time = n, ProcessTitle(title), at
		s.dump.Of = RankIn(s.dump.Title)
		return true
	case s.dump == nil:
		return false
	case bytes.HasPrefix(b, []byte("Thread ")):
		r.endThread()
		s.thread = threadOf(b)
		return true
	case len(bytes.TrimSpace(b)) == 0, bytes.HasPrefix(b, []byte("Python v")), bytes.HasPrefix(b, []byte("Parent Process ")), bytes.HasPrefix(b, []byte("----")):
		return true
	case bytes.HasPrefix(b, []byte("    ")) && !bytes.HasPrefix(b, []byte("     ")):
		r.frame(bytes.TrimSpace(b))
		return true
	case b[0] == ' ': // values of variables, which may include prompts
		return true
	}
	r.closeSpy()
	return false
}

// ProcessTitle returns the name of a process without its arguments, which may be keys.
func ProcessTitle(b []byte) string {
	first, _, _ := bytes.Cut(bytes.TrimSpace(b), []byte(" "))
	const most = 120
	return strings.ToValidUTF8(string(first[:min(len(first), most)]), "")
}

// RankIn parses the rank in the title of a process, "sglang::scheduler_DP1_TP3_EP3" or "VLLM::Worker_TP0".
func RankIn(title string) trace.Rank {
	rank := trace.NoRank
	for part := range strings.SplitSeq(title, "_") {
		for name, to := range map[string]*int16{"DP": &rank.DP, "PP": &rank.PP, "TP": &rank.TP, "EP": &rank.EP} {
			if n, err := strconv.ParseUint(strings.TrimPrefix(part, name), 10, 15); strings.HasPrefix(part, name) && err == nil {
				*to = int16(n)
			}
		}
	}
	return rank
}

// threadOf parses `Thread 163685 (idle): "MainThread"`.
func threadOf(b []byte) *recorder.Thread {
	t := &recorder.Thread{Stack: recorder.Unknown, State: string(token(b, "(", ")"))}
	if name := token(b, `): "`, `"`); len(name) > 0 {
		t.Name = strings.ToValidUTF8(string(name[:min(len(name), 80)]), "")
	}
	if len(t.State) > 20 {
		t.State = ""
	}
	return t
}

// IsSpyFrame reports whether a line is a stack frame printed by py-spy, "    run_batch (scheduler.py:3232)".
// The code in a traceback does not end like that.
func IsSpyFrame(b []byte) bool {
	i := bytes.LastIndex(b, []byte(" ("))
	file, line, ok := bytes.Cut(bytes.TrimSuffix(b[max(i, 0):], []byte(")")), []byte(":"))
	_, digits := Digits(line, len(line))
	return i > 0 && (ok && digits && bytes.HasSuffix(file, []byte(".py")) || bytes.HasSuffix(file, []byte(".so")))
}

// frame parses "run_batch (scheduler.py:3232)", or "at::_ops::copy_::call (libtorch_cpu.so)".
func (r *CollectiveReader) frame(b []byte) {
	s := &r.Spy
	i := bytes.LastIndex(b, []byte(" ("))
	if s.thread == nil || i <= 0 || b[len(b)-1] != ')' || len(b) > 1000 || len(s.frames) == maxFrames {
		return
	}
	f := recorder.Frame{Name: r.names.Intern(b[:min(i, 120)])}
	file, line, ok := bytes.Cut(b[i+2:len(b)-1], []byte(":"))
	if n, err := strconv.ParseInt(string(line), 10, 32); ok && err == nil {
		f.Line = int32(n)
	}
	f.File = r.names.Intern(file)
	s.frames = append(s.frames, f)
}

// endThread adds a thread to the current dump.
func (r *CollectiveReader) endThread() {
	s := &r.Spy
	if s.thread != nil && len(s.dump.Threads) < maxThreads {
		AddThread(s.dump, *s.thread, s.frames)
	}
	s.thread, s.frames = nil, s.frames[:0]
}

// AddThread adds a thread with its stack to a dump.
func AddThread(d *recorder.FlightDump, t recorder.Thread, frames []recorder.Frame) {
	if len(frames) > 0 {
		t.Stack = int32(len(d.Stacks))
		d.Stacks = append(d.Stacks, slices.Clone(frames))
	}
	d.Threads = append(d.Threads, t)
}

// closeSpy ends the current dump.
func (r *CollectiveReader) closeSpy() {
	s := &r.Spy
	if s.dump == nil {
		return
	}
	r.endThread()
	MainFirst(s.dump)
	if len(s.dump.Threads) > 0 {
		s.found = append(s.found, s.dump)
		if s.Done != nil {
			s.Done(s.dump)
		}
	}
	s.dump = nil
}

// MainFirst moves the main thread of a process to the front.
func MainFirst(d *recorder.FlightDump) {
	if i := slices.IndexFunc(d.Threads, func(t recorder.Thread) bool { return t.Name == "MainThread" }); i > 0 {
		main := d.Threads[i]
		d.Threads = slices.Insert(slices.Delete(d.Threads, i, i+1), 0, main)
	}
}

// endSpy adds the dumps of py-spy.
func (r *CollectiveReader) endSpy() {
	r.closeSpy()
	for _, d := range r.Spy.found {
		r.set.Add(d)
	}
	r.Spy.found = nil
}
