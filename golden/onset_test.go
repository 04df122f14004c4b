package golden

import "testing"

// What is planted from the onset on is not there before.
func TestPlantsAtOnset(t *testing.T) {
	c := DefaultConfig(4)
	c.Straggler = Straggler{TP: 1, Factor: 1.5, AtOnset: true}
	c.SlowTransfers, c.SlowTransfersAtOnset = 0.3, true
	r, err := Simulate(c)
	if err != nil {
		t.Fatal(err)
	}
	truth := r.Truth().Straggler
	if truth.OnsetNs != r.onset || truth.Steps == 0 || truth.LastSteps < truth.Steps*9/10 {
		t.Errorf("straggler since %d, last in %d of %d steps; the onset is %d", truth.OnsetNs, truth.LastSteps, truth.Steps, r.onset)
	}
	var late [2]int64 // before and after the onset, summed up
	var steps [2]int64
	for i := range r.steps {
		st := &r.steps[i]
		if st.mode != modeDecode || st.instance != len(r.instances)-1 || st.dp != 0 {
			continue
		}
		after := 0
		if st.ranks[0].formed >= r.onset {
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
	for _, q := range r.requests {
		if q.slowTransfer && q.arrival < r.onset {
			slow[0]++
		} else if q.slowTransfer {
			slow[1]++
		}
	}
	if slow[0] != 0 || slow[1] == 0 {
		t.Errorf("%d slow transfers before the onset, %d after", slow[0], slow[1])
	}
}
