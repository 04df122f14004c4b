package profile

import "github.com/sgtrace/sgtrace/trace"

// An Inventory is what a recording of a machine holds, for those who want to know what
// there is: plain rows, whatever format it has.
type Inventory struct {
	Session   Session
	Processes []Process
	GPUs      []Device
	Tables    []Table
	Messages  []Message
}

// A Session is when and how a machine was recorded.
type Session struct {
	Product string // version of the profiler; "" is unknown
	Schema  string // version of the form of the file; "" is unknown
	Host    string // that was profiled; "" is unknown
	// Absolute tells that times are Unix time; otherwise they count from the start.
	Absolute bool
	Start    trace.Time // Unix ns; 0 is unknown
	Duration int64      // ns; -1 is unknown
	// Graphs is how CUDA graphs were recorded: "Node" has their kernels, "Graph" only
	// their runs; "" is unknown.
	Graphs string
	// PartialTables and PartialTimes are what the file was bounded to; "" is nothing.
	PartialTables, PartialTimes string
}

// A Process is one that a recording names.
type Process struct {
	PID  int64
	Name string
	GPUs []int64 // of the machine that it could use, by their ids
}

// A Table is one of a file.
type Table struct {
	Name string
	// Rows is how many it has at most: too many where rows were deleted later; -1 is
	// unknown.
	Rows int64
	Read bool // its rows are drawn or counted in reports
	// First is when the event of the first row begins, Last when that of the last row
	// ends. Timed is false if there is no telling.
	First, Last trace.Time
	Timed       bool
}

// A Message is a warning or an error of a profiler: lost data, missing rights.
type Message struct {
	Time     trace.Time
	PID      int32 // -1 is unknown
	Severity uint8 // 2 is a warning, 3 an error
	Text     string
}
