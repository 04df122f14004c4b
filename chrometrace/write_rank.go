package chrometrace

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Numbers of processes and threads are made up, so that the events that name them tell
// the true ones, too, and which rank they are of: chrometrace reads them again.

// rankOf returns the track of the rank that track id is of; nil if it is of none.
func rankOf(tracks []trace.Track, id trace.TrackID, names []string) *trace.Track {
	for ; id != 0; id = tracks[id].Parent {
		group := &tracks[tracks[id].Parent]
		if tracks[id].Parent != 0 && group.Parent == 0 && names[group.Name] == profile.ByRank {
			return &tracks[id]
		}
	}
	return nil
}

// rankMembers returns what is told of a rank behind the name of a process.
func rankMembers(rank *trace.Track, names []string) string {
	if rank == nil {
		return ""
	}
	members := `,"part":` + quote(names[rank.Name])
	if host := names[rank.Host]; host != "" {
		members += `,"host":` + quote(host)
	}
	if text := rank.Rank.String(); text != "" {
		members += `,"rank":` + quote(text)
	}
	return members
}

// rowMembers returns what is told of a row of a rank behind its name. Those that are
// about the profiler have no numbers.
func rowMembers(t *trace.Track) string {
	if t.Kind != trace.KindStream && t.TID == 0 {
		return ""
	}
	return fmt.Sprintf(`,"pid":%d,"tid":%d`, t.PID, t.TID)
}

// BaseAttribute is the attribute that tells from when on the times of a file count, in ns
// since 1970.
const BaseAttribute = "base_time_ns"

// Attributes returns the attributes of the trace with the given head, and BaseAttribute;
// none if [Write] did not write it, or the head ends among them.
func Attributes(head []byte) map[string]string {
	line, _, ok := bytes.Cut(head, []byte("\n"))
	var header struct{ Metadata map[string]string }
	if !ok || json.Unmarshal(append(bytes.Clone(line), "]}"...), &header) != nil {
		return nil
	}
	return header.Metadata
}
