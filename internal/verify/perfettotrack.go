package verify

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/trace"
)

var descriptorRules = []rule{{1, varintField}, {2, bytesField}, {5, varintField}, {8, bytesField}, {11, varintField}, {12, varintField},
	{14, bytesField}, {15, varintField}}

// descriptor reads a TrackDescriptor. A track's uuid is its number in the model.
func (p *perfettoFile) descriptor(b []byte) error {
	var f, counter fields
	if err := f.parse(b, descriptorRules); err != nil {
		return err
	}
	uuid := f.number(1)
	if uuid == 0 || uuid >= uint64(len(p.declared)) || p.declared[uuid] {
		return fmt.Errorf("track %d is described twice, or is not in the model", uuid)
	}
	p.declared[uuid] = true
	id := trace.TrackID(uuid)
	track := &p.t.Tracks[id]
	name, _ := f.text(2)
	desc, _ := f.text(14)
	x := f.find(8)
	unit := ""
	if x != nil {
		if err := counter.parse(x.data, []rule{{6, bytesField}}); err != nil {
			return err
		}
		unit, _ = counter.text(6)
	}
	ordering := uint64(0)
	if p.parents[id] {
		ordering = 3 // EXPLICIT
	}
	switch {
	case !p.is(name, track.Name) || !p.is(desc, track.Desc):
		return fmt.Errorf("%s is called %q (%q) in the file", p.place(id), name, desc)
	case f.number(5) != uint64(track.Parent):
		return fmt.Errorf("%s has another parent in the file", p.place(id))
	case (x != nil) != (track.Kind == trace.KindCounter) || !p.is(unit, track.Unit) && x != nil:
		return fmt.Errorf("%s counts something else in the file", p.place(id))
	case f.number(12) != uint64(p.ranks[id]) || f.number(11) != ordering || f.number(15) != 2:
		return fmt.Errorf("%s is at another place among its siblings in the file", p.place(id))
	}
	return nil
}

// siblings returns, by TrackID, the place of every track among its siblings, by
// Order, then id, and whether it has children.
func siblings(tracks []trace.Track) (ranks []int, parents []bool) {
	ranks, parents = make([]int, len(tracks)), make([]bool, len(tracks))
	for parent, ids := range childrenOf(tracks) {
		parents[parent] = len(ids) > 0
		for rank, id := range ids {
			ranks[id] = rank
		}
	}
	return ranks, parents
}

// childrenOf returns the children of every track, and of 0 those without a parent,
// as viewers show them.
func childrenOf(tracks []trace.Track) [][]trace.TrackID {
	children := make([][]trace.TrackID, len(tracks))
	for id := 1; id < len(tracks); id++ {
		parent := tracks[id].Parent
		children[parent] = append(children[parent], trace.TrackID(id))
	}
	for _, ids := range children {
		slices.SortFunc(ids, func(a, b trace.TrackID) int {
			return cmp.Or(cmp.Compare(tracks[a].Order, tracks[b].Order), cmp.Compare(a, b))
		})
	}
	return children
}
