package torch

import (
	"io"
	"strconv"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// Category is a row of categoryNames.
type Category uint8

const (
	catUserAnnotation Category = iota
	catCPUOp
	catPython
	catRuntime
	CatDriver
	CatKernel
	CatMemcpy
	catGPUAnnotation
	catFlow
	catTrace
	catInstant
	catMetadata
	categories
)

// categoryNames has the "cat" of events, and for those without one, the name in truth's counts.
var categoryNames = [categories]string{
	catUserAnnotation: "user_annotation",
	catCPUOp:          "cpu_op",
	catPython:         "python_function",
	catRuntime:        "cuda_runtime",
	CatDriver:         "cuda_driver",
	CatKernel:         "kernel",
	CatMemcpy:         "gpu_memcpy",
	catGPUAnnotation:  "gpu_user_annotation",
	catFlow:           "ac2g",
	catTrace:          "Trace",
	catInstant:        "instant",
	catMetadata:       "metadata",
}

// writer writes the events of one trace in the way of libkineto (output_json.cpp), which appends text and sorts nothing.
type writer struct {
	w     io.Writer
	buf   []byte
	err   error // of the first failed write
	clock *simulator.Clock
	base  int64 // origin of the times in the file, on the clock
	pid   int
	gpu   int // ordinal of the device
	warps Warps

	counts      [categories]int
	first, last int64 // true time of the slices
	index       int   // Ev Idx of the next event that has one
}

const bufferSize = 1 << 17

// flush writes the buffer, if it is large enough or if now is set.
func (t *writer) flush(now bool) {
	if !now && len(t.buf) < bufferSize {
		return
	}
	if t.err == nil {
		_, t.err = t.w.Write(t.buf)
	}
	t.buf = t.buf[:0]
}

func (t *writer) text(s string) *writer {
	t.buf = append(t.buf, s...)
	return t
}

func (t *writer) integer(n int64) *writer {
	t.buf = strconv.AppendInt(t.buf, n, 10)
	return t
}

// time writes a true time as the clock shows it.
func (t *writer) time(at int64) *writer { return t.micros(t.shown(at) - t.base) }

// micros writes ns as µs, always with three digits after the point.
func (t *writer) micros(ns int64) *writer {
	rest := ns % 1000
	t.buf = strconv.AppendInt(t.buf, ns/1000, 10)
	t.buf = append(t.buf, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
	return t
}

// slice begins a slice; its arguments and end follow. The name must need no escapes in JSON.
func (t *writer) slice(cat Category, name string, pid, tid int, start, end int64) {
	t.counts[cat]++
	if t.first == 0 || start < t.first {
		t.first = start
	}
	t.last = max(t.last, end)
	t.text("  {\n    \"ph\": \"X\", \"cat\": \"").text(categoryNames[cat]).text(`", "name": "`).text(name).
		text(`", "pid": `).integer(int64(pid)).text(`, "tid": `).integer(int64(tid)).text(",\n    \"ts\": ").time(start).
		text(`, "dur": `).micros(t.shown(end) - t.shown(start)).text(",\n    \"args\": {\n      ")
}

// end ends an event with arguments.
func (t *writer) end() {
	t.text("\n    }\n  },\n")
	t.flush(false)
}

// annotation writes a record_function of the scheduler.
func (t *writer) annotation(name string, external int, start, end int64) {
	t.slice(catUserAnnotation, name, t.pid, t.pid, start, end)
	t.text(`"External id": `).integer(int64(external)).text(`, "Record function id": 0, `)
	t.eventIndex()
}

// operator writes an operator of PyTorch; args is empty or ends in a comma.
func (t *writer) operator(name string, external int, args string, start, end int64) {
	t.openOperator(name, external, start, end)
	t.text(args)
	t.eventIndex()
}

// openOperator begins an operator; more arguments follow.
func (t *writer) openOperator(name string, external int, start, end int64) {
	t.slice(catCPUOp, name, t.pid, t.pid, start, end)
	t.text(`"External id": `).integer(int64(external)).text(`, "Record function id": 0, `)
}

// eventIndex writes the last argument of events recorded by PyTorch itself, and ends the event.
func (t *writer) eventIndex() {
	t.text(`"Ev Idx": `).integer(int64(t.index))
	t.index++
	t.end()
}

// runtime writes a call of CUDA with its flow: the start of a flow if the call launches something, and otherwise, as
// libkineto does, the end of one without a start.
func (t *writer) runtime(api APIKind, external, correlation int, start, end int64) {
	row := &APITable[api]
	t.slice(row.In, row.name, t.pid, t.pid, start, end)
	t.externalID(external)
	t.text(`"cbid": `).integer(int64(row.cbid)).text(`, "correlation": `).integer(int64(correlation))
	t.end()
	t.flow(row.launches, correlation, t.pid, t.pid, start)
}

// externalID writes the id of the operator that an event belongs to, if any. The blanks stand for the line breaks that
// libkineto replaces.
func (t *writer) externalID(external int) {
	if external != 0 {
		t.text(`"External id": `).integer(int64(external)).text(",      ")
	}
}

// flow writes one end of an arrow from a call to its work.
func (t *writer) flow(start bool, id, pid, tid int, at int64) {
	t.counts[catFlow]++
	phase, end := "f", ", \"bp\": \"e\"\n  },\n"
	if start {
		phase, end = "s", "\n  },\n"
	}
	t.text("  {\n    \"ph\": \"").text(phase).text(`", "id": `).integer(int64(id)).text(`, "pid": `).integer(int64(pid)).
		text(`, "tid": `).integer(int64(tid)).text(`, "ts": `).time(at).text(",\n    \"cat\": \"ac2g\", \"name\": \"ac2g\"").
		text(end)
}

// python writes a frame of the Python stack and returns its id; parent 0 is none.
func (t *writer) python(name string, parent int, start, end int64) int {
	return t.pythonOn(t.pid, name, parent, start, end)
}

// pythonOn is python on another thread.
func (t *writer) pythonOn(tid int, name string, parent int, start, end int64) int {
	t.slice(catPython, name, t.pid, tid, start, end)
	t.text(`"Python parent id": `)
	if parent == 0 {
		t.text("null")
	} else {
		t.integer(int64(parent))
	}
	id := t.counts[catPython]
	t.text(`, "Python id": `).integer(int64(id)).text(", ")
	t.eventIndex()
	return id
}

// kernel writes the arguments of a kernel; details come from CUPTI.
func (t *writer) kernel(stream, correlation int, details string) {
	t.onDevice(`"queued": 0, `, stream, correlation)
	t.text(details)
}

// copied writes the arguments of a copy with the given duration.
func (t *writer) copied(stream, correlation, bytes int, took int64) {
	t.onDevice("", stream, correlation)
	t.text(`      "bytes": `).integer(int64(bytes)).text(`, "memory bandwidth (GB/s)": `)
	t.buf = strconv.AppendFloat(t.buf, float64(bytes)/float64(took), 'g', -1, 64)
}

// onDevice writes the arguments about where something ran, and a comma.
func (t *writer) onDevice(queued string, stream, correlation int) {
	t.text(queued).text(`"device": `).integer(int64(t.gpu)).text(`, "context": 1,      "stream": `).integer(int64(stream)).
		text(`, "correlation": `).integer(int64(correlation)).text(",")
}

// gpuAnnotation writes a CPU annotation as it appears on a stream of the GPU.
func (t *writer) gpuAnnotation(name string, external, stream int, start, end int64) {
	t.slice(catGPUAnnotation, name, t.gpu, stream, start, end)
	t.text(`"External id": `).integer(int64(external))
	t.end()
}

// metadata writes an event of phase M about a row of a process, or a process.
func (t *writer) metadata(name, key string, value any, pid, tid int, at int64) {
	t.counts[catMetadata]++
	t.text("  {\n    \"name\": \"" + name + `", "ph": "M", "ts": `).time(at).text(`, "pid": `).integer(int64(pid)).
		text(`, "tid": `).integer(int64(tid)).text(",\n    \"args\": {\n      \"" + key + `": `)
	switch v := value.(type) {
	case string:
		t.buf = simulator.AppendText(t.buf, v)
	case int:
		t.integer(int64(v))
	}
	t.end()
}
