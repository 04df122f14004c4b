package limit

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Kind is what a server has no more of.
type Kind uint8

const (
	Running   Kind = iota // places in the batch: no more requests may run
	Slots                 // places for all requests that a decode server has made room for
	Room                  // in the KV cache
	Prefills              // time to compute prompts
	Transfers             // bandwidth to transfer KV caches
)

// Topics are what findings of limits are about.
var Topics = []string{Running.String(), Slots.String(), Room.String(), Prefills.String(), Transfers.String()}

// String returns the word that reports print.
func (k Kind) String() string {
	return [...]string{"running requests", "requests", "KV cache", "prefill", "KV transfer"}[k]
}

// A Limit is what keeps requests waiting on a server.
type Limit struct {
	place.Where // the lead rank of the server
	Kind        Kind
	Spells      int        // stretches of time in which requests waited
	From, To    trace.Time // of the first and of the last of them
	Always      bool       // it was so from the beginning of the dump, nearly
	Open        bool       // and until the end of it
	Length      int64      // ns of all of them
	Waited      int64      // ns that requests waited in them, all together
	Requests    []int      // that waited, as indexes into Set.Requests, by start
	Most        int        // that waited at a time, first at the instant At
	At          trace.Time
	// StuckAt is how many places are taken for most of the waiting; 0 of other limits.
	StuckAt int
	// Running is how many requests ran while others waited, on average; Fewest and
	// Greatest bound it for nine tenths of the waiting.
	Running          float64
	Fewest, Greatest int
	Prefilling       float64 // part of the waiting in which prompts were computed
	Retracted        int     // how often requests were thrown out meanwhile
	// Share is Waited as part of the E2E of all requests that the server worked for.
	Share float64
	// Slowdown is how many times as long as alone a KV transfer takes; 0 of others.
	Slowdown float64

	waits map[int]int64 // ns that each of Requests waited
}

// Limits are what keeps requests waiting.
type Limits struct {
	Requests int     // that were looked at
	List     []Limit // the one that costs most first

	set *request.Set
}

// Find finds the limits of all servers.
func Find(s *request.Set) *Limits {
	l := &Limits{Requests: len(s.Requests), set: s}
	during := arrivals(s)
	for _, v := range serversOf(s) {
		whole := v.e2e(s)
		if whole == 0 {
			continue
		}
		for _, limit := range v.limits(whole) {
			limit.dateWithin(during)
			l.List = append(l.List, limit)
		}
	}
	slices.SortStableFunc(l.List, func(x, y Limit) int { return cmp.Compare(y.Waited, x.Waited) })
	return l
}
