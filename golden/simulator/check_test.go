package simulator

import "fmt"

// CheckRequest checks that the times and counts of a request are plausible.
func CheckRequest(r *Run, q *Request) error {
	if q.End <= q.Arrival {
		return fmt.Errorf("ends %d ns after arrival", q.End-q.Arrival)
	}
	a := q.answering()
	if full := a.Tokens == q.output; q.Outcome == Finished && (!full || a.Finish != q.stop) {
		return fmt.Errorf("finished %q with %d of %d tokens", a.Finish, a.Tokens, q.output)
	}
	for _, h := range q.Halves {
		if h.Received < q.Arrival || h.End <= h.Received {
			return fmt.Errorf("half received %d and ended %d ns after arrival", h.Received-q.Arrival, h.End-q.Arrival)
		}
		if n := len(r.gaps(h)) + 1; h == a && q.Outcome == Finished && n != q.output {
			return fmt.Errorf("turns for %d of %d tokens", n, q.output)
		}
		for _, th := range r.Threads(h) {
			if err := checkThread(&th); err != nil {
				return fmt.Errorf("%s: %w", r.Processes[th.Process].Rank, err)
			}
		}
	}
	return nil
}

// checkThread checks that the stages of a thread follow each other inside it, and that nested
// stages lie inside their parents.
func checkThread(th *Thread) error {
	last := map[int]int64{} // end of the last stage, by parent
	for i, st := range th.Stages {
		name := st.Name()
		if st.Start < th.Start || st.End > th.End || st.End < st.Start {
			return fmt.Errorf("%s [%d, %d] is not in its thread [%d, %d]", name, st.Start, st.End, th.Start, th.End)
		}
		if st.Parent >= i {
			return fmt.Errorf("%s is nested in a later stage", name)
		}
		if st.Parent >= 0 {
			if p := th.Stages[st.Parent]; st.kind != decodeBootstrap && (st.Start < p.Start || st.End > p.End) {
				return fmt.Errorf("%s [%d, %d] is not in %s [%d, %d]", name, st.Start, st.End, p.Name(), p.Start, p.End)
			}
		}
		if st.kind == runBatchCPU || st.Parent >= 0 && st.kind == decodeBootstrap {
			continue // concurrent with others, as is SGLang's bootstrap of a retracted request
		}
		if st.Start < last[st.Parent] {
			return fmt.Errorf("%s starts %d ns before the one before ends", name, last[st.Parent]-st.Start)
		}
		last[st.Parent] = st.End
	}
	return nil
}

// CheckLockstep checks that no rank of a TP group starts a step before all have finished the
// previous one.
func CheckLockstep(r *Run) error {
	free := map[[3]int]int64{} // by instance, DP rank and stage
	for i := range r.Steps {
		st := &r.Steps[i]
		tp := r.Instances[st.Instance].Size.TP
		for stage := range len(st.Ranks) / tp {
			key := [3]int{st.Instance, st.DP, stage}
			group := st.Ranks[stage*tp:][:tp]
			end := int64(0)
			for _, k := range group {
				if k.Formed > k.Scheduled || k.Scheduled > k.Computed || k.Computed > k.done {
					return fmt.Errorf("step %d: times of a rank out of order: %+v", i, k)
				}
				if k.Scheduled < free[key] {
					return fmt.Errorf("step %d, stage %d: a rank starts %d ns before its peers are done", i, stage, free[key]-k.Scheduled)
				}
				end = max(end, k.Computed)
			}
			free[key] = end
		}
	}
	return nil
}
