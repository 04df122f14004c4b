package overview

import (
	"time"

	"github.com/sgtrace/sgtrace/trace"
)

const (
	// farApart is how long nothing goes on between runs, ns, as for devices.
	farApart = trace.Time(time.Hour)
	// day is how long a run lasts, ns: a longer one is divided.
	day = trace.Time(24 * time.Hour)
)

// severalRuns reports whether the inputs may be of several runs: several files, far apart in time
// or over more than a day.
func (o *Overview) severalRuns() bool {
	if len(o.Files) < 2 {
		return false
	}
	if o.GPUs != nil && len(o.GPUs.Runs) > 1 {
		return true
	}
	if o.Requests == nil || len(o.Requests.Requests) == 0 {
		return false
	}
	first, last := trace.Time(0), trace.Time(0)
	for i := range o.Requests.Requests { // by start
		r := &o.Requests.Requests[i]
		if last != 0 && (r.Start-last >= farApart || r.End-first > day) {
			return true
		}
		if first == 0 {
			first = r.Start
		}
		last = max(last, r.End)
	}
	return false
}
