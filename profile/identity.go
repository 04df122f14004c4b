package profile

import (
	"cmp"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// An Identity is which rank of which host a profile is of, or one of its parts.
type Identity struct {
	Part     string // of a merged file, "" of others
	Rank     trace.Rank
	RankFrom string // what tells: "label", "header", "process", "name"; "" is nothing
	Host     string // "" is unknown
}

// ProcessOf returns the name and the number of the process that a part of p is of. Both
// are "" and 0 if they are unknown, or there are n processes, more than one. Processes
// without a name do not count beside those that have one: producers give events numbers of
// threads, or those of another container.
func (p *Profile) ProcessOf(part string) (name string, pid int64, n int) {
	numbers := map[bool]map[string]int64{false: {}, true: {}} // by text, of those with a name and of the others
	for i := range p.Rows {
		r := &p.Rows[i]
		isDevice := r.Kind != RowThread || r.PIDText == "0" && r.Process == "" || strings.HasPrefix(r.Labels, "GPU") || r.Labels == "NPU"
		if r.Part != part || isDevice {
			continue
		}
		numbers[r.Process != ""][r.PIDText] = r.PID
		name = cmp.Or(name, r.Process)
	}
	processes := numbers[name != ""]
	if len(processes) > 1 {
		return "", 0, len(processes)
	}
	for _, number := range processes {
		pid = number
	}
	return name, cmp.Or(p.Meta.PID, pid), len(processes)
}
