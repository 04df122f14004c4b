package drawing

import (
	"fmt"
	"strconv"
	"time"

	"github.com/sgtrace/sgtrace/convert/drawing/counters"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// Options say what a timeline shows.
type Options struct {
	View  View
	Ranks RankLayout
	// Requests is the number of requests that "By request" shows: 0 shows those that matter, Every shows
	// all.
	Requests int
	// Findings are the findings, costliest first; nil if the inputs were not analyzed.
	Findings []Finding
	// Paths are the critical paths of slow requests, slowest first.
	Paths []Path
	// Events are events of servers, in order of time.
	Events []Event
	// Nested says which modules and operators launched the kernels of graphs, by file.
	Nested [][]Nested
	counters.Chosen
	// Zone is the time zone for grouping requests by minute; nil is UTC.
	Zone *time.Location
}

// Every as the number of requests means all of them.
const Every = -1

// ParseRequests parses the value of --requests: a number, or "all".
func ParseRequests(s string) (int, error) {
	if s == "all" {
		return Every, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("--requests %q: want all, or a number above 0", s)
	}
	return n, nil
}

// A Finding is what the timeline shows of a finding. The analysis supplies the words; drawing looks up only
// times and requests.
type Finding struct {
	Name  string // name of its row: "straggler · decode DP1 TP0"
	Title string // title of its slice: one sentence
	// Severity sets the color of the slice: findings of one severity share a color.
	Severity string
	// Since and Until are when it began and ended, on the common clock; 0 is the beginning or end of the
	// requests, or of the profiles if OfProfiles.
	Since, Until trace.Time
	OfProfiles   bool
	Record       []Field // its facts, in display order
	Requests     []int   // requests that it names, as indexes into Set.Requests
	Rank         string  // the rank to look at first, as rows name it; "" is no rank
	// Shows is the kind of work on that rank that shows the finding.
	Shows kernelname.Class
}

// Nested is a module or an operator that launched kernels on a row. Those of a row nest; outer ones come first.
type Nested struct {
	First        int32      // index of the first of its kernels among the file's events
	From, To     trace.Time // on the clock of the file
	Name, Shapes trace.Sym  // Shapes are those of an operator's inputs; 0 is unknown
	Operator     bool       // otherwise it is a module
}

// An Event happened at an instant on the common clock.
type Event struct {
	Time  trace.Time
	Name  string // one word: "restart"
	Title string // one sentence
}

// A Field is one fact of a record: a text, or a number if Text is "". NaN is unknown.
type Field struct {
	Key    string
	Text   string
	Number float64
}
