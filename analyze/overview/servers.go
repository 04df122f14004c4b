package overview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/request"
)

// A Server is the ranks of one role, with the hosts that they were on.
type Server struct {
	Role  request.Role
	Hosts []string // as reports print them
	Ranks int
	Size  string // how many ranks there are in each direction: "TP2 DP2"; "" is unknown
	// Missing are the ranks below the highest number in each direction that did nothing:
	// "TP2".
	Missing []string
}

// serversOf lists the roles that worked for the requests of s, in the order of display.
func serversOf(s *request.Set) []Server {
	var out []Server
	r := place.NewRankSet(s)
	for i := 0; i < len(r.Places); {
		from := i
		for i < len(r.Places) && r.Places[i].Role == r.Places[from].Role {
			i++
		}
		out = append(out, serverOf(r.Places[from:i]))
	}
	if slices.ContainsFunc(s.Requests, func(r request.Request) bool { return r.Gateway != request.None }) {
		out = slices.Insert(out, 0, Server{Role: request.Router, Ranks: request.Unknown})
	}
	return out
}

// serverOf sums up the ranks of one role.
func serverOf(ranks []place.Where) Server {
	server := Server{Role: ranks[0].Role, Ranks: len(ranks)}
	var parts [4][]int16
	seen := map[string]bool{}
	for i := range ranks {
		p := &ranks[i]
		if on := p.ServerName(); !seen[on] {
			seen[on] = true
			server.Hosts = append(server.Hosts, on)
		}
		for k, n := range [...]int16{p.Rank.TP, p.Rank.PP, p.Rank.DP, p.Rank.EP} {
			if n >= 0 && !slices.Contains(parts[k], n) {
				parts[k] = append(parts[k], n)
			}
		}
	}
	var sizes []string
	for k, name := range [...]string{"TP", "PP", "DP", "EP"} {
		if len(parts[k]) == 0 {
			continue
		}
		n := slices.Max(parts[k]) + 1
		if n > 1 || name == "TP" {
			sizes = append(sizes, fmt.Sprintf("%s%d", name, n))
		}
		for rank := range n {
			if !slices.Contains(parts[k], rank) {
				server.Missing = append(server.Missing, fmt.Sprintf("%s%d", name, rank))
			}
		}
	}
	server.Size = strings.Join(sizes, " ")
	return server
}

// String describes a server in a few words: "decode TP2 DP2 on c94b1e02".
func (s *Server) String() string {
	if s.Role == request.Router {
		return "gateway"
	}
	const few = 3
	hosts := strings.Join(s.Hosts[:min(few, len(s.Hosts))], ", ")
	if n := len(s.Hosts); n > few {
		hosts = fmt.Sprintf("%d hosts", n)
	}
	text := words.JoinNonEmpty(" ", s.Role.String(), s.Size)
	if hosts != "" && hosts != "?" {
		text += " on " + hosts
	}
	return text
}
