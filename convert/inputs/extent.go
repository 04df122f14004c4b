package inputs

import "github.com/sgtrace/sgtrace/trace"

// An Extent is the time that a timeline covers.
type Extent struct{ From, To trace.Time }

func (e Extent) Has(t trace.Time) bool { return t >= e.From && t <= e.To }
