package gpu

import (
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Watch is told what devices do while they are measured, for those who divide time in
// their own way.
type Watch interface {
	// Recorded tells when each rank was recorded, once and before all else.
	Recorded(ranks [][]request.Interval)
	// Device returns what is told about a device of a rank; it is called for several ranks
	// at once, and for those of a rank one after the other. nil is not watched.
	Device(rank, device int32) DeviceWatch
}

// A DeviceWatch is told what one device does. Times are on the clock of its host.
type DeviceWatch interface {
	// Ran takes the time in which exactly these classes ran, piece by piece, in order and
	// without overlaps. Time that is left out was idle, or not recorded.
	Ran(from, to trace.Time, running Running)
	// Queued takes a kernel or copy whose call is known, in order of its start: when the
	// call began, and when the work did.
	Queued(launched, started trace.Time)
	// Done ends the watch.
	Done()
}

// watched tells a watch when all ranks were recorded.
func watched(w Watch, ranks []rankWork) {
	if w == nil {
		return
	}
	recorded := make([][]request.Interval, len(ranks))
	for i := range ranks {
		for _, span := range ranks[i].recorded {
			recorded[i] = append(recorded[i], request.Interval{From: span.from, To: span.to})
		}
	}
	w.Recorded(recorded)
}

// unwatched is a watch over a device that nobody asked for.
type unwatched struct{}

func (unwatched) Ran(_, _ trace.Time, _ Running) {}
func (unwatched) Queued(_, _ trace.Time)         {}
func (unwatched) Done()                          {}
