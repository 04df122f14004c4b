package series

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/trace"
)

// Finish puts all times on Unix time, and samples and instants in order. Nothing is added
// after that.
func (s *Set) Finish(k Known) {
	same := s.same()
	s.zones(k, same)
	for i := range s.Sources {
		s.shift(&s.Sources[i])
	}
	moved := s.join(same)
	s.shorten()
	s.sortSamples(moved)
	slices.SortStableFunc(s.Instants, func(a, b Instant) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), strings.Compare(s.Sources[a.Source].Name, s.Sources[b.Source].Name), cmp.Compare(a.Line, b.Line))
	})
}

// shift puts the times of an input on Unix time.
func (s *Set) shift(src *Source) {
	east := trace.Time(src.Zone.East)
	if !src.Zone.Local || east == 0 || src.First == 0 {
		return
	}
	src.First, src.Last = src.First-east, src.Last-east
	part := src.part
	for i := range part.samples {
		s.said.At(part.sample + i).Time -= east
	}
	for i := range part.instants {
		if x := &s.Instants[part.instant+i]; x.Time != 0 {
			x.Time -= east
		}
	}
}

// sortSamples puts the samples of each series together, by time; those of one time stay as they
// came. Most are in order already: a log is written as time goes.
//
// moved is where the samples of a series belong: -1 is nowhere.
func (s *Set) sortSamples(moved []int32) {
	s.first = make([]int, len(s.List)+1)
	n := 0
	for i := range s.said.Len() {
		if to := moved[s.said.At(i).Series]; to >= 0 {
			s.first[to+1]++
			n++
		}
	}
	for i := range s.List {
		s.first[i+1] += s.first[i]
	}
	at := slices.Clone(s.first)
	sorted := memory.Make[Sample](n)
	for i := range memory.Each(s.said.Len(), sampleSize) {
		x := *s.said.At(i)
		if x.Series = moved[x.Series]; x.Series < 0 {
			continue
		}
		sorted[at[x.Series]] = x
		at[x.Series]++
	}
	s.samples, s.said = sorted, memory.Column[Sample]{}
	byTime := func(a, b Sample) int { return cmp.Compare(a.Time, b.Time) }
	for i := range s.List {
		part := sorted[s.first[i]:s.first[i+1]]
		if !slices.IsSortedFunc(part, byTime) {
			slices.SortStableFunc(part, byTime)
		}
	}
}

// shorten cuts the folders off the names of servers, as far as names stay different.
func (s *Set) shorten() {
	paths := make([][]string, len(s.Servers))
	for i := range s.Servers {
		paths[i] = strings.Split(s.Servers[i].Name, "/")
	}
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

// addHosts calls servers by their hosts that have one name on several of these, "sglang".
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
