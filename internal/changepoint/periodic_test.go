package changepoint

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Events at nearly equal intervals are periodic even if one is missing; events at random times are
// not.
func TestPeriodic(t *testing.T) {
	const runs = 300
	found, alarms := 0, 0
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 1))
		var regular, random []float64
		for i := range 8 {
			if i != 3 {
				regular = append(regular, 60*float64(i)+1.5*r.NormFloat64())
			}
			random = append(random, 480*r.Float64())
		}
		slices.Sort(random)
		if period, p := Periodic(regular); p < 0.001 && period > 58 && period < 62 {
			found++
		}
		if _, p := Periodic(random); p < 0.001 {
			alarms++
		}
	}
	if found < runs*97/100 || alarms > 2 {
		t.Errorf("%d of %d found, %d false alarms", found, runs, alarms)
	}
}
