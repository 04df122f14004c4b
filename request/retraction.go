package request

// Retractions counts how often the share of thread t was thrown out of the batch. A decode
// server of SGLang reports a second retraction when the request enters again, as soon as it
// has reconnected.
func (s *Set) Retractions(t int) int64 {
	var events, again int64
	for i := range s.ThreadRows(t) {
		if s.Again(i) {
			again++
		}
		for _, e := range s.InstantsOf(i) {
			if e.Kind == Retracted {
				events++
			}
		}
	}
	if again == 0 {
		return events
	}
	return max(events-again, (events+1)/2)
}
