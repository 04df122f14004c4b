package limit

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A state is what a request does on a server.
type state uint8

const (
	queued       state = iota // waits for a batch
	roomless                  // waits for room in the KV cache of a decode server
	running                   // is prefilled or decoded
	transferring              // its KV cache is on the way
	prefilling                // its prompt is computed; it is running, too
	states
)

// A held is a stretch of time in which a request was in a state.
type held struct {
	request.Interval
	request int32 // index into Set.Requests
	tokens  int64 // of the prompt; 0 is unknown
}

// A server is the lead rank of some ranks that schedule together, with what requests did
// on it.
type server struct {
	place.Where
	held     [states][]held // by start
	retracts []trace.Time   // when requests were thrown out of the batch, in order
	served   []int          // requests that it worked for, as indexes into Set.Requests, in order
}

// serversOf collects what requests did on the lead ranks of s, in the order of display.
func serversOf(s *request.Set) []*server {
	ranks := place.NewRankSet(s)
	servers := make([]*server, len(ranks.Places)) // nil of ranks that lead nothing
	bulk := load.BulkOf(s)
	for i := range s.AllRequests() {
		if !bulk.Holds(&s.Requests[i]) {
			continue
		}
		for _, p := range s.PartsOf(&s.Requests[i]) {
			part := &s.Parts[p]
			thread, rank := ranks.Lead(part)
			if !part.Serves() || thread == request.None || rank == request.None || !ranks.Leads[rank] {
				continue
			}
			if servers[rank] == nil {
				servers[rank] = &server{Where: ranks.Places[rank]}
			}
			servers[rank].add(s, part, thread)
		}
	}
	servers = slices.DeleteFunc(servers, func(v *server) bool { return v == nil })
	for _, v := range servers {
		for of := range v.held {
			slices.SortStableFunc(v.held[of], func(x, y held) int { return cmp.Compare(x.From, y.From) })
		}
		slices.Sort(v.retracts)
	}
	return servers
}

// stateOf returns what a request does in a stage of a server of some role; ok is false
// for what no limit is about.
func stateOf(row *request.Row, role request.Role) (of state, ok bool) {
	switch row.Means {
	case request.Queueing:
		return queued, true
	case request.DecodeQueueing:
		if role == request.Unified {
			return running, true // it has its place in the batch
		}
		return queued, true
	case request.ReceivePreparing, request.ReceiveConnecting:
		return roomless, true
	case request.Prefilling, request.Answering, request.Stepping:
		return running, true
	case request.Sending, request.Receiving:
		return transferring, true
	}
	return 0, false
}

// add adds what the lead thread of a part says.
func (v *server) add(s *request.Set, p *request.Part, thread int) {
	if n := len(v.served); n == 0 || v.served[n-1] != p.Request {
		v.served = memory.Append(v.served, p.Request)
	}
	s.EachSelectedStage(s.StagesOf(thread), true, func(i int, outermost bool) {
		row := s.Row(i)
		of, ok := stateOf(row, p.Role)
		if !ok || s.Implausible(i) || row.Start >= row.End || !request.Plausible(row.Start, row.End) {
			return
		}
		h := held{Interval: request.Interval{From: row.Start, To: row.End}, request: int32(p.Request), tokens: max(0, p.PromptTokens)}
		if row.Means == request.Prefilling {
			v.held[prefilling] = memory.Append(v.held[prefilling], h)
		}
		if outermost {
			v.held[of] = memory.Append(v.held[of], h)
		}
	})
	for i := range s.ThreadRows(thread) {
		for _, e := range s.InstantsOf(i) {
			if e.Kind == request.Retracted {
				v.retracts = append(v.retracts, e.Time)
			}
		}
	}
}
