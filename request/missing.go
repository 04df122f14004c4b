package request

import "github.com/sgtrace/sgtrace/trace"

// A Missing is a row that is not in the input, although others show that it was written:
// they lie in it, follow from it, or come before and after it in a count.
type Missing struct {
	Time trace.Time // at about which it ended
	Proc int32      // who wrote it; None is unknown
}

// Complete reports whether nothing shows that rows of r are missing, so that its times
// add up. What its end or the beginning of the input cuts off is missing, too.
func (r *Request) Complete() bool { return r.Flags&MissingRows == 0 }
