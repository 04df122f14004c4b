package series

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// Finish converts all times to Unix time, and sorts samples and instants. Nothing may be added after that.
func (s *Set) Finish(k Known) {
	s.nameKernels()
	same := s.same()
	s.dates(k)
	s.zones(k, same)
	for i := range s.Sources {
		if z := &s.Sources[i].Zone; z.Local {
			s.shift(uint32(i), -trace.Time(z.East))
		}
	}
	s.unnamed(same)
	s.alike(same)
	moved := s.join(same)
	s.shorten()
	s.gather(moved)
	s.reported()
	slices.SortStableFunc(s.Instants, func(a, b Instant) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), strings.Compare(s.Sources[a.Source].Name, s.Sources[b.Source].Name), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Place, b.Place))
	})
}

// shift moves the times of an input later.
func (s *Set) shift(source uint32, by trace.Time) {
	src := &s.Sources[source]
	if by == 0 || src.First == 0 {
		return
	}
	src.First, src.Last = src.First+by, src.Last+by
	for i := range s.columns {
		for k := range s.columns[i].blocks {
			if b := &s.columns[i].blocks[k]; b.source == source {
				b.base, b.from, b.to, b.last.Time = b.base+by, b.from+by, b.to+by, b.last.Time+by
			}
		}
	}
	for i := range src.part.instants {
		if x := &s.Instants[src.part.instant+i]; x.Time != 0 {
			x.Time += by
		}
	}
}

// gather combines the samples of each series, sorted by time.
//
// moved is the series to which the samples of each series belong; -1 drops them.
func (s *Set) gather(moved []int32) {
	columns := make([]column, len(s.List))
	for i := range s.columns {
		if to := moved[i]; to >= 0 {
			c := &columns[to]
			c.blocks, c.n = append(c.blocks, s.columns[i].blocks...), c.n+s.columns[i].n
		}
	}
	for i := range columns {
		columns[i].sort()
	}
	s.columns = columns
}

// shorten strips folders from the names of servers, as far as names stay distinct.
func (s *Set) shorten() {
	paths := order.EachRow(s.Servers, func(x *Server) []string { return strings.Split(x.Name, "/") })
	tail := func(i, n int) string { return strings.Join(paths[i][max(0, len(paths[i])-n):], "/") }
	for i := range s.Servers {
		n := 1
		for n < len(paths[i]) {
			same := false
			for k := range s.Servers {
				same = same || s.Servers[k].Host == s.Servers[i].Host && tail(k, n) == tail(i, n) && !slices.Equal(paths[k], paths[i])
			}
			if !same {
				break
			}
			n++
		}
		s.Servers[i].Name = tail(i, n)
	}
	s.addHosts()
}

// addHosts names servers after their hosts if servers on several hosts share a name, such as "sglang".
func (s *Set) addHosts() {
	names := make([]string, len(s.Servers))
	for i := range s.Servers {
		x := &s.Servers[i]
		names[i] = x.Name
		shared, alone := false, true
		for k := range s.Servers {
			o := &s.Servers[k]
			shared = shared || o.Name == x.Name && o.Host != x.Host && x.Name != ""
			alone = alone && (o.Host != x.Host || o.Name == x.Name || o.Name == "")
		}
		switch {
		case x.Host == "" || !shared:
		case alone:
			names[i] = x.Host
		default:
			names[i] = x.Host + "/" + x.Name
		}
	}
	for i, name := range names {
		s.Servers[i].Name = name
	}
}
