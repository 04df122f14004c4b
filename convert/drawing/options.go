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
	// Requests is how many requests "By request" holds: 0 is those that matter, Every is
	// all of them.
	Requests int
	// Findings are what stands out, the one that costs most first; nil if nobody looked.
	Findings []Finding
	// Paths are what slow requests waited for, the slowest first.
	Paths []Path
	// Events are what happened to servers, in order.
	Events []Event
	// Nested are what the kernels of graphs were launched in, by file of the ranks.
	Nested [][]Nested
	counters.Chosen
	// Zone is in which the minutes of groups of requests are; nil is UTC.
	Zone *time.Location
}

// Every is the number that stands for all requests.
const Every = -1

// ParseRequests reads the value of --requests: a number, or all.
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

// A Finding is what a timeline says of something that stands out. Whoever found it says
// so in words; drawing looks up nothing but times and requests.
type Finding struct {
	Name  string // of its row: "straggler · decode DP1 TP0"
	Title string // of its slice: one sentence
	// Severity gives the slice its color: findings of one severity have the same.
	Severity string
	// Since and Until are when it began and was over, on the common clock; 0 is from the
	// beginning on, and to the end, of the requests, or of what profilers recorded.
	Since, Until trace.Time
	OfProfiles   bool
	Record       []Field // its facts, in the order of display
	Requests     []int   // that it names: indexes into Set.Requests
	Rank         string  // which rank to look at first, as rows call it; "" is no rank
	// Shows is the kind of work of the rank that shows it.
	Shows kernelname.Class
}

// Nested is a module or an operator that kernels on a row were launched in. Those of a row nest, the outer ones
// come first.
type Nested struct {
	First        int32      // the first of them, of the events of the file
	From, To     trace.Time // on the clock of the file
	Name, Shapes trace.Sym  // Shapes are those of the inputs of an operator; 0 is unknown
	Operator     bool       // else it is a module
}

// An Event is something that happened at an instant of the common clock.
type Event struct {
	Time  trace.Time
	Name  string // one word: "restart"
	Title string // one sentence
}

// A Field is a part of a record: a text, or a number if that is "". NaN is unknown.
type Field struct {
	Key    string
	Text   string
	Number float64
}
