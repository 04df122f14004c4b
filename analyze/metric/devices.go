package metric

import "github.com/sgtrace/sgtrace/analyze/table"

// Devices are what the time of a device is spent on. What is exposed runs while nothing runs that is
// worth more: computing, then communicating, then copying.
var (
	Busy         = device(More, "busy", "busy", "GPU busy", "some kernel or copy runs")
	Idle         = device(Less, "idle", "idle", "idle", "nothing runs")
	Compute      = device(Either, "compute", "compute", "compute", "some kernel computes")
	Comm         = device(Either, "comm", "total comm", "total comm", "some kernel communicates")
	ExposedComm  = device(Less, "exposed", "exposed comm", "exposed communication", "some kernel communicates and none computes")
	Copying      = device(Either, "copy", "copy", "copy", "memory is copied or filled")
	ExposedCopy  = device(Less, "exposed copy", "exposed copy", "exposed copy", "memory is copied or filled and no kernel computes or communicates")
	Other        = device(Either, "other", "other", "other", "what runs is neither: CUDA graphs of which only the whole was recorded")
	ExposedOther = device(Less, "exposed other", "exposed other", "exposed other", "nothing runs but what is other")
	LaunchQueue  = &Metric{Name: "queue", Title: "launch queue", Long: "launch queue", Unit: table.Number, Doc: "kernels and copies that are launched and have not started, on average over time"}
	Overlap      = &Metric{Name: "overlap", Title: "overlap", Unit: table.Share, Better: More, Doc: "part of the communication during which some kernel computes"}
)

func device(better Better, name, title, long, doc string) *Metric {
	return &Metric{Name: name, Title: title, Long: long, Unit: table.Duration, Better: better, Doc: doc}
}
