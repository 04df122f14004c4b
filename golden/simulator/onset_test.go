package simulator

import "testing"

// Effects planted from an onset on are absent before it.
func TestPlantsAtOnset(t *testing.T) {
	c := DefaultConfig(4)
	c.Straggler = Straggler{TP: 1, Factor: 1.5, AtOnset: true}
	c.SlowTransfers, c.SlowTransfersAtOnset = 0.3, true
	r, err := Play(c)
	if err != nil {
		t.Fatal(err)
	}
	truth := r.Truth().Straggler
	if truth.OnsetNs != r.Onset || truth.Steps == 0 || truth.LastSteps < truth.Steps*9/10 {
		t.Errorf("straggler since %d, last in %d of %d steps; the onset is %d", truth.OnsetNs, truth.LastSteps, truth.Steps, r.Onset)
	}
	var late [2]int64 // before and after the onset, summed up
	var steps [2]int64
	for i := range r.Steps {
		st := &r.Steps[i]
		if st.Mode != ModeDecode || st.Instance != len(r.Instances)-1 || st.DP != 0 {
			continue
		}
		after := 0
		if st.Ranks[0].Formed >= r.Onset {
			after = 1
		}
		d, _ := r.lateness(st)
		late[after] += d
		steps[after]++
	}
	if before, after := late[0]/steps[0], late[1]/steps[1]; before > ms || after < 5*ms {
		t.Errorf("the straggler is late by %d ns before the onset, by %d after", before, after)
	}
	slow := [2]int{}
	for _, q := range r.Requests {
		if q.slowTransfer && q.Arrival < r.Onset {
			slow[0]++
		} else if q.slowTransfer {
			slow[1]++
		}
	}
	if slow[0] != 0 || slow[1] == 0 {
		t.Errorf("%d slow transfers before the onset, %d after", slow[0], slow[1])
	}
}
