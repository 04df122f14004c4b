package reports

import (
	"fmt"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// groupsChanged says which changes are of all ranks of a group of hosts: "lateness changed on all
// 8 ranks of rack r12 at 12:00:05.0".
func groupsChanged(changes *change.Changes, hosts *document.Hosts, ranks []document.Rank) (sentences []string) {
	if hosts == nil {
		return nil
	}
	for i := range changes.List {
		c := &changes.List[i]
		places := map[string][]place.Where{}
		var what []string
		for k := range c.Shifts {
			shift := &c.Shifts[k]
			name := words.JoinNonEmpty(" ", shift.Stage, shift.Metric.String())
			if places[name] == nil {
				what = append(what, name)
			}
			places[name] = append(places[name], shift.Where)
		}
		for _, name := range what {
			for _, group := range hosts.Covered(places[name], ranks) {
				sentences = append(sentences, fmt.Sprintf("%s changed on %s at %s", name, &group, words.At(c.Time, words.TenthLayout)))
			}
		}
	}
	return sentences
}
