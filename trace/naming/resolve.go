package naming

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// An Input is one file of a merge, with what the caller knows about it.
type Input struct {
	Path string
	// Said is the information in the original file name if Path is a pseudonym; if nil, Path is parsed.
	Said  *Name
	Label string // from the user; "" is none. See [ParseLabel].
	// HeaderRank and WorldSize are rank and world_size in distributedInfo, each -1 if the header lacks it;
	// a WorldSize of 0 means that there is no header. A rank that is not less than its WorldSize is
	// ignored.
	HeaderRank int32
	WorldSize  int32
	HeaderHost string   // host_name
	Processes  []string // names of the file's processes
	PID        int64    // of its only process; 0 is unknown
	// Hints are ranks in groups that need not be the whole world, best first. The first one that does not
	// contradict the other facts counts.
	Hints []Hint
	// Shared says that the input is one of several processes in a file, so that the name of the file does
	// not identify a rank.
	Shared bool
}

// A Hint is a rank in a group of processes.
type Hint struct {
	From       string // "NCCL", "environment"
	Rank, Size int32
}

// Resolved has the facts about one file.
type Resolved struct {
	Path string
	// Rank has the parts and Global as far as each is known. Global is the rank in the file's own
	// torch.distributed world: replicas have the same.
	Rank     trace.Rank
	Host     string // "" is unknown
	From     string // best source of Rank: "label", "header", "process", "name", the From of a Hint, or "" for none
	HostFrom string // of Host: "label", "header", "name", ""
	PID      int64  // of its only process; 0 is unknown
	// NotRank says that the file is not a trace of a rank; Name.What says what it is. A label with a rank
	// overrides it.
	NotRank bool
	Name    Name
}

// hostKnown reports whether the host is known.
func (r *Resolved) hostKnown() bool { return r.Host != "" }

// A Conflict is a finding about the files of a merge that the user should know. Messages say what was done
// about it.
type Conflict struct {
	Path string
	// Message is nil if two names look like the same capture.
	Message *trace.Message
	What    string // the contradiction, in words
}

// Resolve determines rank and host of the files of a merge. Sources, best first: the user's label, the
// file's header, the names of its processes, its name. They complement each other: a header knows the
// global rank, and a name knows TP, DP, PP, EP. If two contradict, the better one is used and the other
// dropped. The result is in the order of in; conflicts within one file come first, then those between
// files.
func Resolve(in []Input) ([]Resolved, []Conflict) {
	out := make([]Resolved, len(in))
	var all []Conflict
	ranks := 0
	for i := range in {
		r := resolver{in: &in[i]}
		r.resolve()
		out[i] = r.Resolved
		all = append(all, r.conflicts...)
		if !r.NotRank {
			ranks++
		}
	}
	for i := range out {
		if r := &out[i]; ranks > 1 && !r.NotRank && r.Rank == trace.NoRank {
			all = append(all, Conflict{r.Path, trace.RankUnknown, "a label: TP0=" + r.Path})
		}
	}
	return out, append(all, duplicates(out)...)
}

// resolver resolves one file.
type resolver struct {
	Resolved
	in        *Input
	conflicts []Conflict
}

func (r *resolver) conflict(m *trace.Message, format string, args ...any) {
	r.conflicts = append(r.conflicts, Conflict{r.Path, m, fmt.Sprintf(format, args...)})
}

func (r *resolver) resolve() {
	r.Path = r.in.Path
	if r.in.Said != nil {
		r.Name = *r.in.Said
	} else {
		r.Name = ParseFile(r.Path)
	}
	r.PID = cmp.Or(r.in.PID, r.Name.PID)
	if r.in.Shared {
		r.Name.Rank, r.Name.PID, r.PID = trace.NoRank, 0, r.in.PID
	}
	r.Rank, r.NotRank = r.Name.Rank, r.Name.NotRank
	if r.Rank != trace.NoRank {
		r.From = "name"
	}
	// A merged file has the header of one rank and the processes of all.
	if !r.NotRank || r.Rank != trace.NoRank || r.Name.What == GraphCapture {
		r.processes()
		r.header()
		r.hints()
	}
	// A worker that captured its graphs before it served is the same rank. The name has only its number
	// within the node.
	if r.Name.What == GraphCapture && r.From != "" && r.From != "name" {
		r.NotRank = false
	}
	host, rank := "", trace.NoRank
	if r.in.Label != "" {
		var err error
		if host, rank, err = ParseLabel(r.in.Label); err != nil {
			r.conflict(trace.RankLabel, "%v; ignored", err)
		}
	}
	r.host(host)
	switch {
	case rank == trace.NoRank:
	case r.in.Shared:
		r.conflict(trace.RankLabel, "the label says %s, but the file has several processes; the label is ignored", text(rank))
	default:
		r.label(rank)
	}
}

// processes uses the rank that the process names agree on.
func (r *resolver) processes() {
	proc := trace.NoRank
	for _, name := range r.in.Processes {
		p := parseProcess(name)
		if _, differ := compare(proc, p); differ {
			r.conflict(trace.RankRank, "its processes have several ranks, %s and %s; their names are ignored", proc, p)
			return
		}
		proc = proc.Fill(p)
	}
	if proc == trace.NoRank {
		return
	}
	if _, differ := compare(proc, r.Rank); differ {
		r.conflict(trace.RankRank, "the file name says %s, the process name %s; the process name is used", text(r.Rank), proc)
		r.Rank = trace.NoRank
	}
	r.Rank, r.From = proc.Fill(r.Rank), "process"
}

// header uses the global rank in the file's header.
func (r *resolver) header() {
	global, size := r.in.HeaderRank, r.in.WorldSize
	if global < 0 || size == 0 {
		return
	}
	if size < 0 {
		r.headerOfUnknownWorld(global)
		return
	}
	if global >= size {
		r.conflict(trace.RankRank, "the header says rank %d of %d; ignored", global, size)
		return
	}
	if !inWorld(r.Rank, global, size, r.Name.Producer == "vllm") {
		r.conflict(trace.RankRank, "the %s says %s, the header rank %d of %d; the header is used", r.From, text(r.Rank), global, size)
		r.Rank = trace.NoRank
	}
	if size > 1 || r.Rank.Global < 0 {
		r.Rank.Global, r.From = global, "header"
	}
}

// headerOfUnknownWorld uses the rank of a header without world_size. How the parts of a rank map to that
// world is unknown, so only a global rank can contradict it.
func (r *resolver) headerOfUnknownWorld(global int32) {
	if r.Rank.Global >= 0 && r.Rank.Global != global {
		r.conflict(trace.RankRank, "the %s says %s, the header rank %d; the header is used", r.From, text(r.Rank), global)
		r.Rank = trace.NoRank
	}
	r.Rank.Global, r.From = global, "header"
}

// hints uses the rank in the first group that agrees with the process names: the largest known group may be
// only part of the world.
func (r *resolver) hints() {
	if r.Rank.Global >= 0 {
		return
	}
	for _, h := range r.in.Hints {
		// Process titles omit the parts that the server has not divided: TP 0 may be the first rank of any
		// block.
		block := r.Rank.TP >= 0 && r.Rank.DP < 0 && r.Rank.PP < 0 && anyShift(h.Rank, int32(r.Rank.TP), h.Size)
		if h.Size > 1 && h.Rank >= 0 && h.Rank < h.Size && (block || inWorld(r.Rank, h.Rank, h.Size, false)) {
			r.Rank.Global, r.From = h.Rank, cmp.Or(r.From, h.From)
			return
		}
	}
}

// label uses the rank given by the user.
func (r *resolver) label(rank trace.Rank) {
	_, differ := compare(rank, r.Rank)
	if rank.Global >= 0 && r.Rank.Global < 0 {
		differ = !inWorld(r.Rank, rank.Global, r.in.WorldSize, true)
	}
	if differ {
		r.conflict(trace.RankRank, "the label says %s, the file's %s %s; the label is used", text(rank), r.From, text(r.Rank))
		r.Rank = trace.NoRank
	}
	r.Rank, r.From, r.NotRank = rank.Fill(r.Rank), "label", false
}

// host uses the host of the label, the header, or the name.
func (r *resolver) host(label string) {
	for _, s := range [...]struct{ host, from string }{
		{label, "label"}, {r.in.HeaderHost, "header"}, {r.Name.Host, "name"},
	} {
		switch {
		case s.host == "":
		case r.Host == "":
			r.Host, r.HostFrom = s.host, s.from
		case r.HostFrom == "header" && !sameHost(r.Host, s.host):
			r.conflict(trace.RankHost, "the file name says host %s, the header %s; the header is used", s.host, r.Host)
		}
	}
}

// sameHost compares hosts, one of which may lack its domain.
func sameHost(a, b string) bool {
	x, domainA, _ := strings.Cut(a, ".")
	y, domainB, _ := strings.Cut(b, ".")
	return strings.EqualFold(x, y) && (domainA == "" || domainB == "" || strings.EqualFold(domainA, domainB))
}

// duplicates finds captures that occur twice, such as a file and its compressed copy.
func duplicates(all []Resolved) (found []Conflict) {
	order := make([]int, len(all))
	places := make([]string, len(all)) // paths without extensions
	for i := range all {
		path := all[i].Path
		stem, _ := split(path)
		order[i], places[i] = i, path[:strings.LastIndexAny(path, `/\`)+1]+stem
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[a].Path, all[b].Path) })
	type key struct {
		place, run, stage string
		time              int64
		part              int
	}
	seen := map[key][]int{}
	for _, i := range order {
		n := &all[i].Name
		k := key{run: n.Run, stage: n.Stage, time: n.Time, part: n.Part}
		if n.Time == 0 { // the name alone is not enough: iteration_1/rank0, iteration_2/rank0
			k.place = places[i]
		}
		for _, j := range seen[k] {
			if places[i] == places[j] || same(&all[i], &all[j]) {
				found = append(found, Conflict{all[i].Path, nil, "it looks like the same capture as " + all[j].Path})
				break
			}
		}
		seen[k] = append(seen[k], i)
	}
	return found
}
