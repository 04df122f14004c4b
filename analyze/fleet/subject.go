package fleet

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// Level is a kind of subject that may be late or slow.
type Level uint8

const (
	GPU   Level = iota // or a rank whose GPU is unknown
	Host               // a machine
	Hosts              // a host that sends KV caches to another one
)

// String returns the word that reports print.
func (l Level) String() string { return [...]string{"gpu", "host", "hosts"}[l] }

// levels are the kinds of findings that say that something is late or slow, with the levels of what they are about.
var levels = map[finding.Kind][]Level{
	finding.Straggler: {GPU, Host},
	finding.Slower:    {Host},
	finding.Common:    {Host, Hosts},
	finding.Transfer:  {Hosts},
}

// unknownHost is the name of an unknown host in reports.
const unknownHost = naming.Unknown

// A key identifies a subject in all runs: a GPU by its UUID, or else by the host and its
// number there, or else by the host and the rank that ran on it.
type key struct {
	level Level
	id    string
}

// A Subject is something that may be late or slow, as described by a run.
type Subject struct {
	Level Level
	Host  string // "" if unknown
	To    string // the second one of two Hosts
	GPU   int32  // as the machine counts; -1 if unknown
	UUID  string // "" if unknown
	Rank  string // rank that ran on the GPU in this run
}

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.level, o.level), cmp.Compare(k.id, o.id))
}

func (s *Subject) key() key {
	switch {
	case s.Level == Host:
		return key{Host, s.Host}
	case s.Level == Hosts:
		return key{Hosts, s.Host + "\x00" + s.To}
	case s.UUID != "":
		return key{GPU, s.UUID}
	case s.GPU >= 0:
		return key{GPU, fmt.Sprintf("%s\x00%d", s.Host, s.GPU)}
	}
	return key{GPU, s.Host + "\x00" + s.Rank}
}

// String returns the name of the subject: "GPU 5 of node7", "node7", "node3 to node7".
func (s *Subject) String() string {
	of := ""
	if s.Host != "" {
		of = " of " + s.Host
	}
	switch {
	case s.Level == Host:
		return s.Host
	case s.Level == Hosts:
		return s.Host + " to " + s.To
	case s.GPU >= 0:
		return fmt.Sprintf("GPU %d%s", s.GPU, of)
	case s.UUID != "":
		return "GPU " + s.UUID
	}
	return s.Rank
}

// A sighting is a subject in one run.
type sighting struct {
	Subject
	could bool           // there was enough data to find it late or slow
	kinds []finding.Kind // kinds of the findings about it
	on    map[key]bool   // for a host: the GPUs on it that were found
	// gpuTime and requestTime are the largest costs of any finding about it, ns.
	gpuTime, requestTime float64
}

// A ranked is a rank of a run, with the place where it ran.
type ranked struct {
	Subject
	where place.Location
}

// ranks are the ranks of a run.
type ranks struct {
	list     []ranked
	profiled map[string]int // index into list, by name in profile.Set
	hosts    map[string]string
}

// findRanks returns the ranks that profilers recorded, and those that worked for requests.
func findRanks(m *finders.Measured) *ranks {
	r := &ranks{profiled: map[string]int{}, hosts: map[string]string{}}
	if m.GPUs != nil {
		r.addProfiled(m)
	}
	if s := m.Of.Requests; s != nil {
		for _, where := range place.NewRankSet(s).Places {
			r.addServing(where)
		}
		for p := range s.Procs {
			r.hosts[s.RankName(p)] = s.HostOf(p)
		}
	}
	return r
}

// addProfiled adds the ranks whose devices were recorded. A trace numbers devices as the process
// does, which is how the machine does, unless several ranks of a host used the same number.
func (r *ranks) addProfiled(m *finders.Measured) {
	var devices order.Groups[int32, []int32] // devices by rank
	for i := range m.GPUs.GPUs {
		of := devices.Of(m.GPUs.GPUs[i].RankIndex)
		*of = append(*of, m.GPUs.GPUs[i].Device)
	}
	type slot struct {
		host string
		gpu  int32
	}
	users := map[slot]int{}
	for k, i := range devices.Keys {
		x := ranked{Subject: Subject{Level: GPU, GPU: -1, Rank: m.Of.Profiles.Ranks[i]}, where: place.Named(m.Of.Profiles.Ranks[i])}
		if homes := m.Of.Profiles.Placements; int(i) < len(homes) {
			x.Host, x.GPU, x.UUID = homes[i].Host, homes[i].GPU, homes[i].UUID
		}
		x.where.Host = x.Host
		if of := devices.List[k]; x.GPU < 0 && x.UUID == "" && len(of) == 1 && x.Host != "" {
			x.GPU = of[0]
		}
		users[slot{x.Host, x.GPU}]++
		r.profiled[x.Rank] = len(r.list)
		r.list = append(r.list, x)
	}
	for i := range r.list {
		if x := &r.list[i]; users[slot{x.Host, x.GPU}] > 1 && x.UUID == "" {
			x.GPU = -1
		}
	}
}

// addServing adds a rank that worked for requests, unless it is a profiled one, which gets its place.
func (r *ranks) addServing(where place.Location) {
	if i := r.serving(&where); i >= 0 {
		r.list[i].where = where
		return
	}
	host := where.Host
	if host == unknownHost {
		host = ""
	}
	r.list = append(r.list, ranked{Subject{Level: GPU, Host: host, GPU: -1, Rank: where.String()}, where})
}

// serving returns the index of the profiled rank at a place; -1 if there is none, or several.
func (r *ranks) serving(where *place.Location) int {
	found := -1
	for _, i := range r.profiled {
		x := &r.list[i]
		if x.where.Rank == trace.NoRank || where.Rank == trace.NoRank || x.Host != where.Host || !x.where.Overlaps(where) {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// rankOf returns the rank that a finding is about, or nil.
func (r *ranks) rankOf(f *finding.Finding) *ranked {
	if f.At.Scope != place.OneRank {
		return nil
	}
	if f.At.Host == "" {
		for _, e := range f.Evidence {
			for _, k := range e.Row {
				if i, ok := r.profiled[k.Text]; ok && k.Column == "rank" {
					return &r.list[i]
				}
			}
		}
	}
	i := slices.IndexFunc(r.list, func(x ranked) bool { return x.where == f.At })
	if i < 0 {
		return nil
	}
	return &r.list[i]
}
