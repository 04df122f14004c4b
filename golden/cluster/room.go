package cluster

import (
	"cmp"
	"fmt"
	"slices"
)

// The share of the remaining tokens of running requests for which KV cache is kept free. SGLang starts with a high share,
// which sinks with each step until it proves too low.
const (
	firstHope = 0.7
	lastHope  = 0.098
	hopeFalls = (firstHope - lastHope) / 600 // with each step
	maxAhead  = 4096                         // bound of the remaining tokens of one request
	keptEach  = 512                          // tokens that a decode server keeps free for each request
)

// hold takes more of the KV cache for a job, release gives all of it back.
func (j *job) hold(tokens int) {
	j.holds += tokens
	j.server.held += tokens
}

func (j *job) release() {
	j.server.held -= j.holds
	j.holds = 0
}

// size returns the number of tokens of KV that a job needs to continue.
func (j *job) size() int { return j.req.Prompt + j.half.Produced }

// admits takes a job into the KV cache, if there is room for it and for the needs of others.
func (v *server) admits(j *job) bool {
	ahead := 0.0
	if v.role == Unified {
		ahead = v.hope * float64(min(j.req.MaxTokens-j.half.Produced, maxAhead))
		for _, other := range v.running {
			ahead += v.hope * float64(min(other.req.MaxTokens-other.half.Produced, maxAhead))
		}
	}
	if j.size()+int(ahead) > v.pool.KV-v.held && v.held > 0 {
		return false
	}
	j.hold(j.size())
	return true
}

// preallocate reserves room, in order of arrival, for the KV of requests that prefill servers will send, and tells
// those servers to begin.
func (v *server) preallocate() {
	for len(v.prealloc) > 0 && len(v.retracted) == 0 {
		j := v.prealloc[0]
		holders := 0
		for _, other := range v.jobs {
			if other.holds > 0 {
				holders++
			}
		}
		if v.held > 0 && j.size()+keptEach*holders > v.pool.KV-v.held {
			return
		}
		v.prealloc = v.prealloc[1:]
		j.hold(j.size())
		j.half.Reserved = v.sim.Agenda.Now
		j.peer.reserve()
	}
}

// resume takes retracted requests of a decode server back, once there is room.
func (v *server) resume() {
	for len(v.retracted) > 0 && len(v.running) < v.pool.Batch {
		j := v.retracted[0]
		if v.held > 0 && j.size()+keptEach > v.pool.KV-v.held {
			return
		}
		v.retracted = v.retracted[1:]
		j.hold(j.size())
		v.running = append(v.running, j)
	}
}

// retract retracts requests until the next step has room: those with the fewest tokens first, and among equals the one with
// the longest prompt.
func (v *server) retract() {
	need := len(v.running)
	if v.pool.Accepted > 0 {
		need *= 5
	}
	before, n := v.hope, 0
	v.hope = max(lastHope, v.hope-hopeFalls)
	for ; v.held+need > v.pool.KV && len(v.running) > 1; n++ {
		j := slices.MinFunc(v.running, func(a, b *job) int {
			return cmp.Or(cmp.Compare(a.half.Produced, b.half.Produced), cmp.Compare(b.req.Prompt, a.req.Prompt))
		})
		v.running = slices.DeleteFunc(v.running, func(other *job) bool { return other == j })
		j.release()
		j.half.Retracted = append(j.half.Retracted, v.sim.Agenda.Now)
		if v.role == Decode {
			v.retracted = append(v.retracted, j)
			continue
		}
		j.left = j.size()
		v.waiting = append(v.waiting, j)
	}
	if n == 0 {
		return
	}
	given, most := 0, 1
	for _, j := range v.running {
		given, most = given+j.half.Produced+20, most+j.req.MaxTokens
	}
	v.hope = min(1, float64(given)/float64(most))
	v.say(fmt.Sprintf("KV cache pool is full. Retract requests. #retracted_reqs: %d, #aborted_retracted_reqs: 0, #new_tokens_gained: %d, #new_token_ratio: %.4f -> %.4f",
		n, max(0, v.pool.KV-v.held), before, v.hope))
}

// say logs a line.
func (v *server) say(text string) {
	s := &v.sim.run.Servers[v.index]
	s.Said = append(s.Said, LogLine{v.sim.Agenda.Now, text})
}
