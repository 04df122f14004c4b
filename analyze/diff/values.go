package diff

import "slices"

// Values are the durations of one kind and name in the capture, of all ranks, in ns and
// sorted. There are none of what only its total means something.
func (d *Collected) Values(kind Kind, name string) []int64 {
	var values []int64
	for key, groups := range d.groups {
		if key.Kind != kind || key.Name != name {
			continue
		}
		for _, g := range groups {
			for i := range g.pieces {
				g.pieces[i].Settle(d.in)
				g.pieces[i].Each(func(v int64) { values = append(values, v) })
			}
		}
	}
	slices.Sort(values)
	return values
}
