package perfetto

import (
	"cmp"
	"io"
	"slices"

	"github.com/sgtrace/sgtrace/trace"
)

// tracks writes a descriptor for every track, parents first. A track's uuid is
// its TrackID: uuids are scoped to the file, and small ones are short in every
// packet.
//
// All are plain tracks, without process or thread: trace_processor would join
// processes of equal pid, and containers repeat pids. Order below a parent is
// explicit. That of the roots cannot be: Perfetto sorts plain roots by name,
// and a descriptor of the implicit root (uuid 0) orders only processes and
// threads (viz/summary/track_event.sql).
func (e *encoder) tracks(w io.Writer) error {
	ranks, parents := siblingRanks(e.t.Tracks)
	for id := 1; id < len(e.t.Tracks); id++ {
		e.buf = appendTrack(e.buf[:0], trace.TrackID(id), &e.t.Tracks[id], e.names, ranks[id], parents[id])
		if _, err := w.Write(e.buf); err != nil {
			return err
		}
	}
	return nil
}

func appendTrack(b []byte, id trace.TrackID, track *trace.Track, names []string, rank int, isParent bool) []byte {
	b, packet := open(b, tracePacket)
	b, descriptor := open(b, packetTrackDescriptor)
	b = appendUint(b, descriptorUUID, uint64(id))
	b = appendString(b, descriptorName, validUTF8(names[track.Name]))
	if track.Parent != 0 {
		b = appendUint(b, descriptorParent, uint64(track.Parent))
	}
	if track.Desc != 0 {
		b = appendString(b, descriptorDescription, validUTF8(names[track.Desc]))
	}
	if track.Kind == trace.KindCounter {
		var counter int
		b, counter = open(b, descriptorCounter)
		if track.Unit != 0 {
			b = appendString(b, counterUnitName, validUTF8(names[track.Unit]))
		}
		b = shut(b, counter)
	}
	if isParent {
		b = appendUint(b, descriptorChildOrdering, childOrderingExplicit)
	}
	b = appendUint(b, descriptorSiblingRank, uint64(rank))
	// By default siblings of equal name become one row.
	b = appendUint(b, descriptorSiblingMerge, siblingMergeNone)
	return shut(shut(b, descriptor), packet)
}

// siblingRanks returns the position of every track among its siblings, by
// Order, then id, and whether it has children.
func siblingRanks(tracks []trace.Track) (ranks []int, parents []bool) {
	order := make([]int, len(tracks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		x, y := &tracks[i], &tracks[j]
		return cmp.Or(cmp.Compare(x.Parent, y.Parent), cmp.Compare(x.Order, y.Order))
	})
	ranks, parents = make([]int, len(tracks)), make([]bool, len(tracks))
	rank, parent := 0, trace.TrackID(0)
	for _, i := range order {
		if i == 0 {
			continue
		}
		if tracks[i].Parent != parent {
			rank, parent = 0, tracks[i].Parent
		}
		ranks[i] = rank
		parents[parent] = true
		rank++
	}
	return ranks, parents
}
