// Package naming decides the names of ranks and hosts, so that every report and timeline uses the same name
// for the same thing:
//
//   - A rank is "decode DP1 TP0": its role, then its position in the parallel groups. Parts
//     that are 0 on every rank are omitted, and so is the role "unified" if no server has
//     another one. The host follows in parentheses, "decode TP0 (node7)", on the ranks of a
//     role in which a rank occurs twice.
//   - A host is shown by its name if any input has it, otherwise by the beginning of its ID.
//   - A process of a rank is "DP1 TP0 · decode scheduler": what distinguishes rows comes first.
//   - Any other process is "python3 111". Its host and its file are added only if another
//     process would have the same name.
//
// [Parse] parses the names of ranks and of their processes, and what users type for them.
//
// The package also determines the rank and host of a profiler trace. It uses only names and opens
// nothing; the caller passes in what comes from inside a file (rank, host, process names).
//
//  1. [ParseFile] parses a file name. Every producer has its own naming conventions, which
//     are rows of a table in forms.go. A name that matches no row is searched for words like
//     "rank3" (words.go).
//  2. [ParseLabel] parses the label of "label=path", parseProcess the title of a serving
//     process.
//  3. [Resolve] weighs these against each other and against the file's header, for all files
//     of a merge, and reports conflicts.
//  4. [Captures] groups the files of each rank.
//
// Matching is anchored: a rank word starts the name or follows a separator, so that "STEP-3" is not
// EP 3. Directories never count: "runs-TP-8/" is a configuration, not a rank. In doubt, the rank stays
// unknown: the user can be asked for a missing rank, but a wrong one misleads.
package naming

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// A Place is what inputs say about the place of a rank.
type Place struct {
	Role   string     // "prefill", "decode", "unified"; "" is unknown
	Host   string     // as in the input: a name or an ID; "" is unknown
	Server int        // number among the servers of its role and host, from 1; 0 if there is only one
	Rank   trace.Rank // NoRank for a process that works for its role without being a rank
}

// Unknown is the name of a host that no input names.
const Unknown = "?"

const (
	unified = "unified" // the role that may be omitted
	other   = "other"   // without a known role
)

// Names holds the names of ranks and hosts. A nil Names shows hosts, roles, and parts as they are.
type Names struct {
	hosts  hosts
	hidden trace.Rank      // 0 for parts that are not shown when 0, otherwise -1
	twice  map[string]bool // roles whose ranks show their host, since a rank occurs twice
	roles  bool            // "unified" is shown, too
}

// New names the ranks and hosts of places; places without role and rank contribute only their hosts. known
// has the names of hosts that places may identify by ID.
func New(places []Place, known HostNames) *Names {
	n := &Names{hosts: nameHosts(places, known), hidden: hiddenParts(places), twice: map[string]bool{}}
	type rank struct {
		role string
		rank trace.Rank
	}
	type server struct {
		host   string
		number int
	}
	first := map[rank]server{}
	roles := map[string]bool{}
	for _, p := range places {
		if p.Role == "" && p.Rank == trace.NoRank {
			continue
		}
		if p.Role != "" && p.Role != other {
			roles[p.Role] = true
		}
		of, on := rank{p.Role, n.shown(p.Rank)}, server{n.Host(p.Host), p.Server}
		if before, ok := first[of]; !ok {
			first[of] = on
		} else if before != on {
			n.twice[p.Role] = true
		}
	}
	n.roles = len(roles) > 1
	return n
}

// hiddenParts returns 0 for each part to omit when it is 0, because it is 0 on every rank. If that would
// leave a rank without a name, a part is kept, preferably TP.
func hiddenParts(places []Place) trace.Rank {
	hidden := trace.Rank{Global: -1}
	for _, p := range places {
		for _, part := range [...]struct {
			of int16
			to *int16
		}{{p.Rank.DP, &hidden.DP}, {p.Rank.PP, &hidden.PP}, {p.Rank.TP, &hidden.TP}, {p.Rank.EP, &hidden.EP}} {
			if part.of > 0 {
				*part.to = -1
			}
		}
	}
	for _, p := range places {
		r := p.Rank
		r.Global = -1 // it is shown if there are no parts
		if hide(r, hidden) != trace.NoRank {
			continue
		}
		switch {
		case r == trace.NoRank:
		case r.TP >= 0:
			hidden.TP = -1
		case r.DP >= 0:
			hidden.DP = -1
		case r.PP >= 0:
			hidden.PP = -1
		default:
			hidden.EP = -1
		}
	}
	return hidden
}

// hide returns r without the hidden parts.
func hide(r, hidden trace.Rank) trace.Rank {
	for _, part := range [...]struct {
		of *int16
		by int16
	}{{&r.DP, hidden.DP}, {&r.PP, hidden.PP}, {&r.TP, hidden.TP}, {&r.EP, hidden.EP}} {
		if *part.of == part.by {
			*part.of = -1
		}
	}
	return r
}

// shown returns the parts of r that are in its name.
func (n *Names) shown(r trace.Rank) trace.Rank {
	if n == nil {
		return r
	}
	return hide(r, n.hidden)
}

// Short names a rank within its server: "DP1 TP0", "rank 7"; "" is unknown.
func (n *Names) Short(r trace.Rank) string { return n.shown(r).String() }

// role returns the role for the start of a name; "" if it is obvious.
func (n *Names) role(role string) string {
	if role == unified && n != nil && !n.roles {
		return ""
	}
	return role
}

// Server names a server by its host, with its number if the host has several: "node7 #2".
func (n *Names) Server(host string, number int) string {
	if number == 0 {
		return n.Host(host)
	}
	return n.Host(host) + ServerMark + strconv.Itoa(number)
}

// ServerMark precedes the number of a server.
const ServerMark = " #"

// Rank names a rank: "decode DP1 TP0", "prefill TP0 (node7 #2)". A place with some unknown parts is a group
// of ranks: "decode DP1".
func (n *Names) Rank(p Place) string {
	name := join(n.role(p.Role), n.Short(p.Rank))
	return join(cmp.Or(name, p.Role), n.where(p))
}

// where returns the server in parentheses, if ranks of its role need it.
func (n *Names) where(p Place) string {
	if n != nil && !n.twice[p.Role] || p.Host == "" && p.Server == 0 {
		return ""
	}
	return "(" + n.Server(p.Host, p.Server) + ")"
}

// Process names a process or one of its threads by its place and its label: "DP1 TP0 · decode scheduler",
// "mooncake transfer worker 0".
func (n *Names) Process(p Place, label string) string {
	rank, what := n.Short(p.Rank), plain(label)
	if rank == "" {
		return label
	}
	if role := n.role(p.Role); !strings.Contains(strings.ToLower(what), role) {
		what = join(role, what)
	}
	return rank + Separator + what
}

// ProcessOn is Process followed by the server in parentheses, "PrefillTokenizer (node7)": for a rank if its
// name is not unique, and for any other process if the server is known. A process that only its service tells from others is
// that server, "vllm-1".
func (n *Names) ProcessOn(p Place, label string) string {
	if p.Rank == trace.NoRank && p.Host != "" && p.Host == label {
		return n.Server(p.Host, p.Server)
	}
	on := n.where(p)
	if p.Rank == trace.NoRank && p.Host != "" {
		on = "(" + n.Server(p.Host, p.Server) + ")"
	}
	return join(n.Process(p, label), on)
}

// Separator separates what distinguishes rows from what they are.
const Separator = " · "

// plain lowercases the words of a label that are merely capitalized.
func plain(label string) string {
	words := strings.Split(label, " ")
	for i, w := range words {
		if w != "" && w[1:] == strings.ToLower(w[1:]) {
			words[i] = strings.ToLower(w)
		}
	}
	return strings.Join(words, " ")
}

// join joins non-empty texts with a space.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " " + b
}

// A Want is what a user asks for: all ranks that match it.
type Want struct {
	Role string     // "" is any
	Host string     // or its prefix, with an optional server number: "node7 #2"; "" is any
	Rank trace.Rank // unknown parts match any
}

// rankRoles are the roles that may begin the name of a rank.
var rankRoles = []string{"prefill", "decode", unified, "encoder", other}

// Parse parses the name of a rank, "decode DP1 TP0 (node7)", of a process, "DP1 TP0 · decode scheduler", or
// a producer's name for a rank: "TP0-PP0-DP1", "7".
func Parse(text string) (Want, error) {
	w := Want{Rank: trace.NoRank}
	name, server, _ := strings.Cut(text, " (")
	w.Host = strings.TrimSuffix(server, ")")
	name, label, _ := strings.Cut(name, Separator)
	role, rank, _ := strings.Cut(name, " ")
	if slices.Contains(rankRoles, role) {
		w.Role, name = role, rank
	}
	if what, _, _ := strings.Cut(label, " "); slices.Contains(rankRoles, what) {
		w.Role = what
	}
	if name == "" && w.Role != "" {
		return w, nil
	}
	var err error
	w.Rank, err = trace.ParseRank(name)
	return w, err
}

// Is reports whether a place matches w.
func (n *Names) Is(p Place, w Want) bool {
	return (w.Role == "" || w.Role == p.Role) && w.Rank.Matches(p.Rank) && n.isServer(p, w.Host)
}

// isServer reports whether text refers to the server of a place.
func (n *Names) isServer(p Place, text string) bool {
	if text == "" || text == n.Server(p.Host, p.Server) {
		return true
	}
	return !strings.Contains(text, ServerMark) && n.IsHost(p.Host, text)
}

// A Process is what inputs say about a process without a known rank.
type Process struct {
	Name string // "python3"; "" is unknown
	PID  int64  // 0 is unknown
	Host string // as in the input; "" is unknown
	File string // in which it was recorded
}

// Processes names processes without a known rank: "python3 111". Processes with the same name on several
// hosts are preceded by the host, "node7 python3 111". If that does not distinguish them, the file follows:
// "python3 of run2". Processes with all of these equal have equal names.
func (n *Names) Processes(all []Process) []string {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = cmp.Or(p.Name, "process")
		if p.PID != 0 {
			names[i] += " " + strconv.FormatInt(p.PID, 10)
		}
	}
	tellApart(names, func(i int) string {
		if all[i].Host == "" {
			return names[i]
		}
		return n.Host(all[i].Host) + " " + names[i]
	})
	tellApart(names, func(i int) string { return names[i] + " of " + File(all[i].File) })
	return names
}

// tellApart replaces equal names by longer ones, if these differ.
func tellApart(names []string, longer func(i int) string) {
	alike := map[string][]int{}
	for i, name := range names {
		alike[name] = append(alike[name], i)
	}
	for _, list := range alike {
		long, differ := make([]string, len(list)), false
		for k, i := range list {
			long[k] = longer(i)
			differ = differ || long[k] != long[0]
		}
		for k, i := range list {
			if differ {
				names[i] = long[k]
			}
		}
	}
}

// File names a file: without folders and the usual extensions of recordings.
func File(path string) string {
	name := filepath.Base(path)
	for _, suffix := range []string{".gz", ".zst", ".json", ".trace", ".pt", ".sqlite"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}
