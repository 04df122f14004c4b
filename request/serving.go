package request

import "strings"

// ServingRoles are the roles whose servers compute, in the order of a request's
// way through them.
var ServingRoles = []Role{Encoder, Prefill, Unified, Decode}

// Serves reports whether a part is the work of a server that computes, and not a
// router or the sending of a KV cache.
func (p *Part) Serves() bool {
	switch p.Role {
	case Encoder, Prefill, Unified, Decode:
		return true
	}
	return false
}

// ServingParts yields the parts of servers that compute, request by request.
func (s *Set) ServingParts(yield func(*Part) bool) {
	for r := range s.AllRequests() {
		for _, p := range s.PartsOf(&s.Requests[r]) {
			if part := &s.Parts[p]; part.Serves() && !yield(part) {
				return
			}
		}
	}
}

// RolesOf lists the roles of a request's parts, each once: "prefill+decode".
func (s *Set) RolesOf(r *Request) string {
	var roles []string
	var seen [Other + 1]bool
	for _, p := range s.PartsOf(r) {
		role := s.Parts[p].Role
		if !seen[role] && role != Sender {
			seen[role] = true
			roles = append(roles, role.String())
		}
	}
	return strings.Join(roles, "+")
}

// ModelOf returns the name of the model that answered r, "" if it is unknown.
func (s *Set) ModelOf(r *Request) string { return s.Syms.Name(s.Parts[s.Answering(r)].Model) }

// PrefillTokens returns how many tokens of the prompt were computed; Unknown if that is
// not known.
func (m *Metrics) PrefillTokens() int64 {
	if m.PromptTokens < 0 {
		return Unknown
	}
	return max(0, m.PromptTokens-max(0, m.CachedTokens))
}

// DecodeTokens returns how many tokens were generated after the first one.
func (m *Metrics) DecodeTokens() int64 {
	if m.CompletionTokens < 1 {
		return Unknown
	}
	return m.CompletionTokens - 1
}

// StepYield returns how many tokens came out in how many steps of decoding: of those that
// verify drafts where the dump tells of them, else of all. 0 steps are unknown.
func (m *Metrics) StepYield() (tokens, steps int64) {
	switch {
	case m.Verified > 0:
		return m.Accepted, m.Verified
	case m.ITL.N > 0 && m.Retractions == 0 && m.DecodeTokens() > 0:
		return m.DecodeTokens(), int64(m.ITL.N)
	}
	return 0, 0
}

// SameBatch is how far the prefills of one batch begin apart at most, in ns: a
// scheduler stamps one request after the other.
const SameBatch = 100_000
