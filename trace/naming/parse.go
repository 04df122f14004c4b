package naming

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

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
