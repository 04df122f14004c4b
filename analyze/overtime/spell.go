package overtime

import "github.com/sgtrace/sgtrace/internal/changepoint"

// spells returns the changes after which values are higher: the last one, and those that the next change undoes. mean is that of some values.
func spells(list []changepoint.Change, mean func(from, to int) float64) (up []changepoint.Change) {
	for i, x := range list {
		if i == len(list)-1 {
			up = append(up, x)
			continue
		}
		if before, during := mean(x.From, x.At), mean(x.At, x.To); during > before && near(mean(x.To, list[i+1].To), before, during) {
			up = append(up, x)
		}
	}
	return up
}
