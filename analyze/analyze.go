package analyze

import "github.com/sgtrace/sgtrace/analyze/place"

// placeOf returns where proc is.
func (t *Tail) placeOf(proc int32) place.Where {
	return place.NewWhere(t.set, t.hosts, int(proc))
}
