package series

import (
	"cmp"
	"fmt"
	"slices"
)

// LastErrors returns the samples of the metrics that keep the last error of a device, by place. Some exporters have the code in a label,
// too: then each code is a series of its own.
func (s *Set) LastErrors() map[int32][]Sample {
	of := map[int32][]Sample{}
	for i := range s.List {
		if x := &s.List[i]; x.Metric == Xid {
			of[x.Place] = slices.AppendSeq(of[x.Place], s.Each(i))
		}
	}
	for _, list := range of {
		slices.SortStableFunc(list, func(a, b Sample) int { return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(b.Value, a.Value)) })
	}
	return of
}

// reported makes instants of them: where the code changes from one scrape to the next, whatever files these are in. The one that the
// first scrape has was there before it.
func (s *Set) reported() {
	source := map[int32]uint32{}
	for i := range s.List {
		if x := &s.List[i]; x.Metric == Xid && s.columns[i].n > 0 {
			source[x.Place] = s.columns[i].blocks[0].source
		}
	}
	for place, list := range s.LastErrors() {
		for k := 1; k < len(list); k++ {
			if code := list[k].Value; code > 0 && code != list[k-1].Value && list[k].Time != list[k-1].Time {
				s.Instants = append(s.Instants, Instant{Time: list[k].Time, Place: place, Kind: Hardware, Count: 1, Source: source[place], Text: s.Syms.Intern(fmt.Sprintf("Xid %.0f", code))})
			}
		}
	}
}
