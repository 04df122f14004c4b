// Package naming decides what ranks and hosts are called, so that every report and every
// timeline calls one thing by one name:
//
//   - A rank is "decode DP1 TP0": its role, then its place in the parallel groups. Parts
//     that are 0 on every rank are left out, and so is the role "unified" where no server
//     has another one. The host follows in parentheses, "decode TP0 (node7)", on the
//     ranks of a role that has a rank twice.
//   - A host is called by its name if any input tells it, else by the beginning of its id.
//   - A process of a rank is "DP1 TP0 · decode scheduler": what tells rows apart comes first.
//   - Any other process is "python3 111". Its host and its file are mentioned only where
//     another one is called the same.
//
// [Parse] reads the names of ranks and of their processes, and what users type for them.
//
// It also tells which rank and which host a profiler trace belongs to. It reads names
// only and opens nothing; what it takes from inside a file (rank, host, process names)
// the caller hands over.
//
//  1. [ParseFile] reads one file name. Every producer names its files in its own
//     way; the ways are rows of a table in forms.go. What matches no row is
//     searched for words like "rank3" (words.go).
//  2. [ParseLabel] reads the label of "label=path", parseProcess the title
//     that a serving process gives itself.
//  3. [Resolve] weighs them against each other and against the file's header,
//     for all files of a merge, and reports what does not fit.
//  4. [Captures] groups the files of one rank.
//
// Matching is anchored: a rank word starts the name or follows a separator, so
// that "STEP-3" is not EP 3. Directories never count: "runs-TP-8/" is a
// configuration, not a rank. In doubt the rank stays unknown: a missing rank
// can be asked for, a wrong one misleads.
package naming

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// A Place is what inputs tell about the place of a rank.
type Place struct {
	Role   string     // "prefill", "decode", "unified"; "" is unknown
	Host   string     // as the input calls it: a name, or an id; "" is unknown
	Server int        // of those of its role and host, from 1 on; 0 is the only one
	Rank   trace.Rank // NoRank for a process that does the work of its role without being a rank
}

// Unknown is the name of a host that no input names.
const Unknown = "?"

const (
	unified = "unified" // the role that needs no mention
	other   = "other"   // what is not known to have a role
)

// Names holds the names of the ranks and hosts of some inputs. Nil knows nothing about
// them: then hosts, roles and parts are shown as far as they are known.
type Names struct {
	hosts  hosts
	hidden trace.Rank      // parts that no rank shows are 0 here, others -1
	twice  map[string]bool // roles that show hosts, as they have a rank twice
	roles  bool            // "unified" is shown, too
}

// New names the ranks and the hosts of places, of which those without role and rank are
// hosts only. Known has the names of hosts of which places may tell ids.
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

// hiddenParts returns the parts that are left out, as those that are 0: no rank has
// another one. Of a rank with nothing else a part stays, TP if it is known.
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
		r.Global = -1 // is shown where there is no part
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

// hide returns r without the parts that are hidden.
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

// shown returns the parts of r that its name has.
func (n *Names) shown(r trace.Rank) trace.Rank {
	if n == nil {
		return r
	}
	return hide(r, n.hidden)
}

// Short names a rank among those of its server: "DP1 TP0", "rank 7"; "" is unknown.
func (n *Names) Short(r trace.Rank) string { return n.shown(r).String() }

// role returns the role as names begin with it; "" where that goes without saying.
func (n *Names) role(role string) string {
	if role == unified && n != nil && !n.roles {
		return ""
	}
	return role
}

// Server names a server by its host, with its number if others are there: "node7 #2".
func (n *Names) Server(host string, number int) string {
	if number == 0 {
		return n.Host(host)
	}
	return n.Host(host) + ServerMark + strconv.Itoa(number)
}

// ServerMark stands before the number of a server.
const ServerMark = " #"

// Rank names a rank: "decode DP1 TP0", "prefill TP0 (node7 #2)". A place of a group of
// ranks, of which some parts are unknown, names that: "decode DP1".
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

// Process names a process or one of its threads by its place, and by the label that it
// has: "DP1 TP0 · decode scheduler", "mooncake transfer worker 0".
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

// ProcessOn is Process with the server in parentheses, "PrefillTokenizer (node7)": of a
// rank where others are called the same, of all else where it is known.
func (n *Names) ProcessOn(p Place, label string) string {
	on := n.where(p)
	if p.Rank == trace.NoRank && p.Host != "" {
		on = "(" + n.Server(p.Host, p.Server) + ")"
	}
	return join(n.Process(p, label), on)
}

// Separator stands between what tells rows apart and what they are.
const Separator = " · "

// plain writes the words of a label small that are no more than capitalized.
func plain(label string) string {
	words := strings.Split(label, " ")
	for i, w := range words {
		if w != "" && w[1:] == strings.ToLower(w[1:]) {
			words[i] = strings.ToLower(w)
		}
	}
	return strings.Join(words, " ")
}

// join joins what is not empty.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " " + b
}

// A Want is what a user asks for: all ranks of which nothing differs.
type Want struct {
	Role string     // "" is any
	Host string     // or its beginning, with the number of a server: "node7 #2"; "" is any
	Rank trace.Rank // parts that are not known may be any
}

// rankRoles are the roles that names of ranks begin with.
var rankRoles = []string{"prefill", "decode", unified, "encoder", other}

// Parse reads the name of a rank, "decode DP1 TP0 (node7)", of a process, "DP1 TP0 ·
// decode scheduler", or what a producer calls a rank: "TP0-PP0-DP1", "7".
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

// Is reports whether a place is wanted.
func (n *Names) Is(p Place, w Want) bool {
	return (w.Role == "" || w.Role == p.Role) && w.Rank.Matches(p.Rank) && n.isServer(p, w.Host)
}

// isServer reports whether the server of a place is meant by text.
func (n *Names) isServer(p Place, text string) bool {
	if text == "" || text == n.Server(p.Host, p.Server) {
		return true
	}
	return !strings.Contains(text, ServerMark) && n.IsHost(p.Host, text)
}

// A Process is what inputs tell about a process of which no rank is known.
type Process struct {
	Name string // "python3"; "" is unknown
	PID  int64  // 0 is unknown
	Host string // as the input calls it; "" is unknown
	File string // that it was recorded in
}

// Processes names processes of which no rank is known: "python3 111". The host goes before
// processes that are called alike on several hosts, "node7 python3 111". The file follows
// where that does not tell them apart, either: "python3 of run2". Processes of which all of
// this is equal have equal names.
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

// tellApart gives those that have one name longer ones, if these differ.
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

// File names a file: without folders, and without what all recordings end in.
func File(path string) string {
	name := filepath.Base(path)
	for _, suffix := range []string{".gz", ".zst", ".json", ".trace", ".pt", ".sqlite"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}
