package pftest

import (
	"errors"
	"fmt"
)

// maxAncestors is the depth at which trace_processor stops looking for a root.
const maxAncestors = 100

// descriptor reads a TrackDescriptor.
func (d *decoder) descriptor(b []byte) error {
	fields, err := parse("TrackDescriptor", b, descriptorRules)
	if err != nil {
		return err
	}
	t := &Track{Rank: -1}
	merge := uint64(0)
	for _, f := range fields {
		err = nil
		switch f.number {
		case 1:
			t.UUID = f.num
		case 2:
			t.Name, err = text(f.data)
		case 5:
			t.parentUUID = f.num
		case 8:
			t.Counter = true
			t.Unit, err = unit(f.data)
		case 11:
			t.explicit = f.num == 3
		case 12:
			t.Rank = int(f.num)
		case 14:
			t.Desc, err = text(f.data)
		case 15:
			merge = f.num
		}
		if err != nil {
			return err
		}
	}
	if t.UUID == 0 || d.tracks[t.UUID] != nil {
		return fmt.Errorf("track uuid %d is zero or not unique", t.UUID)
	}
	if merge != 2 || t.Rank < 0 {
		return fmt.Errorf("track %q may merge with its siblings, or has no rank", t.Name)
	}
	d.tracks[t.UUID] = t
	d.trace.Tracks = append(d.trace.Tracks, t)
	return nil
}

func unit(b []byte) (string, error) {
	fields, err := parse("CounterDescriptor", b, rules{6: bytes})
	if err != nil || len(fields) == 0 {
		return "", err
	}
	return text(fields[0].data)
}

// link resolves parents, when all descriptors are known.
func (d *decoder) link() error {
	type place struct {
		parent *Track
		rank   int
	}
	taken := map[place]bool{}
	for _, t := range d.trace.Tracks {
		if t.parentUUID != 0 {
			t.Parent = d.tracks[t.parentUUID]
			if t.Parent == nil {
				return fmt.Errorf("track %q: parent %d does not exist", t.Name, t.parentUUID)
			}
			if !t.Parent.explicit || t.Parent.Counter {
				return fmt.Errorf("track %q: parent %q does not order its children, or is a counter", t.Name, t.Parent.Name)
			}
		}
		if p := (place{t.Parent, t.Rank}); taken[p] {
			return fmt.Errorf("track %q: a sibling has rank %d, too", t.Name, t.Rank)
		} else {
			taken[p] = true
		}
	}
	for _, t := range d.trace.Tracks {
		n := 0
		for p := t; p != nil; p = p.Parent {
			if n++; n > maxAncestors {
				return errors.New("tracks are in a loop or too deep")
			}
		}
	}
	return nil
}
