package finding

import (
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/trace"
)

// A Finding is something that an engineer should know about, and what shows it.
// What is not beyond doubt is not a finding.
type Finding struct {
	Kind Kind
	// At is where it is. The zero value is everywhere, or nobody knows; a part of a
	// rank that is not known is -1, a host "". Findings of one kind about one place
	// are told as one.
	At place.Where
	// Since is when it began; 0 is from the beginning on.
	Since trace.Time
	// Text is one sentence: what, where, since when, by how much.
	Text string
	// Evidence are further sentences, with the numbers behind it.
	Evidence []string
	// Show are the arguments of 'sgtrace report' that show more: "--tail".
	Show []string
	// Weight is the part of the time of requests, or of ranks, that it costs, 0 to 1:
	// findings are listed by it. Of failed requests it is their part of all.
	Weight float64

	// Topic tells findings of one kind apart that are about different things.
	Topic string
}

// Kind is what a finding is about.
type Kind string

const (
	Straggler Kind = "straggler" // a rank that others wait for
	Slower    Kind = "slower"    // a server that takes longer than others of its role
	Load      Kind = "load"      // more to do than before, or than can be done
	Imbalance Kind = "imbalance" // ranks that should share work do not
	Transfer  Kind = "transfer"  // KV transfers that are slow
	Memory    Kind = "memory"    // requests thrown out of the batch for want of memory
	Errors    Kind = "errors"    // requests that failed
	Pipeline  Kind = "pipeline"  // a stage of a pipeline that others wait for
	GPU       Kind = "gpu"       // devices that are idle, or wait for data
	Tail      Kind = "tail"      // why the slow requests are slow, if it is none of the above
	Change    Kind = "change"    // something else that became different at some time
)

const FewCompared = 20

// A cause stands out if it delays at least FewDelayed requests and one in
// DelayedOneIn.
const (
	FewDelayed   = 3
	DelayedOneIn = 100
)
