package series

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// Called returns the name that people have for a server: logs tell servers apart, and not hosts.
func (x *Server) Called() string { return cmp.Or(x.Name, x.Host) }

// At returns the place of an index of Places, of a role that naming knows, as its names need it.
func (s *Set) At(i int32) naming.Place {
	p := &s.Places[i]
	x := &s.Servers[p.Server]
	return naming.Place{Role: cmp.Or(x.Role, "other"), Host: x.Called(), Rank: p.Rank}
}

// Names returns the names of all ranks: where ranks of a server speak, what else speaks there is none.
func (s *Set) Names() *naming.Names {
	ranked := map[int32]bool{}
	for _, p := range s.Places {
		ranked[p.Server] = ranked[p.Server] || p.Rank.Known() > 0
	}
	var places []naming.Place
	for i, p := range s.Places {
		if p.GPU == NoGPU && p.UUID == "" && (p.Rank.Known() > 0 || !ranked[p.Server]) {
			places = append(places, s.At(int32(i)))
		}
	}
	return naming.New(places, naming.HostNames{})
}

// IsDevice reports whether a place is a GPU.
func (p *Place) IsDevice() bool { return p.GPU != NoGPU || p.UUID != "" }

// Device returns the name of a host's GPU: its number and host, or its UUID where that is all
// there is.
func Device(host, uuid string, gpu int32) string {
	switch {
	case gpu == NoGPU && uuid != "":
		return uuid
	case host == "":
		return fmt.Sprintf("GPU %d", gpu)
	}
	return fmt.Sprintf("GPU %d of %s", gpu, host)
}

// NameOf returns the name that people have for a place: a GPU of a host, a rank, or else a server. names are those of
// the set.
func (s *Set) NameOf(i int32, names *naming.Names) string {
	p := &s.Places[i]
	x := &s.Servers[p.Server]
	switch {
	case p.IsDevice():
		return Device(x.Host, p.UUID, p.GPU)
	case p.Rank != trace.NoRank:
		return names.Rank(s.At(i))
	case p.User != "": // a pod of which its host tells
		return p.User
	}
	return x.Called()
}

// HasLabel reports whether a label, of several, is "category=idle".
func (s *Set) HasLabel(label trace.Sym, is string) bool {
	return slices.Contains(strings.Split(s.Syms.Name(label), ","), is)
}

// Labeled returns a name with the labels that tell it apart from others, in parentheses.
func (s *Set) Labeled(name string, label trace.Sym) string {
	if label == 0 {
		return name
	}
	return name + " (" + s.Syms.Name(label) + ")"
}
