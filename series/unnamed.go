package series

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// unnamed adds to same the files of metrics without a server's name that come from the same server: from one process, which reports when it
// created its counters, or with names like before and after, between which all counters went on. All others are from different servers.
func (s *Set) unnamed(same map[int32]int32) {
	type file struct {
		source, server int32
	}
	var files []file
	for i := range s.Sources {
		if !s.Sources[i].Unnamed {
			continue
		}
		for p := range s.Sources[i].About() {
			if server := s.Places[p].Server; s.Servers[server].Engine != "" {
				files = append(files, file{int32(i), server})
				break
			}
		}
	}
	slices.SortStableFunc(files, func(a, b file) int {
		return cmp.Compare(s.Sources[a.source].First, s.Sources[b.source].First)
	})
	separate := min(1, len(files))
	for k := 1; k < len(files); k++ {
		a, b := files[k-1], files[k]
		if a.server == b.server || s.Sources[a.source].Last >= s.Sources[b.source].First || !s.goesOn(a.source, a.server, b.source, b.server) {
			separate++
			continue
		}
		to := a.server
		if root, ok := same[to]; ok {
			to = root
		}
		same[b.server] = to
	}
	if separate > 1 {
		s.Diags.Add(trace.MetricsUnnamed.Of(s.Sources[files[0].source].Name, separate))
	}
}

// moment matches the part of a file name that says when the file was saved, such as before or after.
var moment = regexp.MustCompile(`(?i)[-_.]?(?:before|after|start|end|begin|first|last|pre|post)[-_.]?`)

// goesOn reports whether a file of metrics is from the same process as an earlier one.
func (s *Set) goesOn(a, serverA, b, serverB int32) bool {
	type key struct {
		metric MetricID
		label  trace.Sym
		rank   trace.Rank
		most   float64
	}
	last := map[key]float64{}
	values := func(source, server int32, do func(k key, first, last float64)) {
		for i := range s.List {
			x := &s.List[i]
			if s.Places[x.Place].Server != server {
				continue
			}
			first, end, n := 0.0, 0.0, 0
			for v := range s.from(uint32(source), i) {
				if end = v.Value; n == 0 {
					first = v.Value
				}
				n++
			}
			if n > 0 {
				do(key{x.Metric, x.Label, s.Places[x.Place].Rank, x.Most}, first, end)
			}
		}
	}
	values(a, serverA, func(k key, _, end float64) { last[k] = end })
	created, other, grew, fell := 0, 0, 0, 0
	values(b, serverB, func(k key, first, _ float64) {
		before, ok := last[k]
		m := s.Metric(k.metric)
		switch {
		case !ok:
		case strings.HasSuffix(m.Name, "_created"):
			if created++; first != before {
				other++
			}
		case m.Kind != Counter && m.Kind != Bucket:
		case first > before:
			grew++
		case first < before:
			fell++
		}
	})
	if created > 0 {
		return other == 0
	}
	name := func(source int32) string { return moment.ReplaceAllString(s.Sources[source].Name, "") }
	return name(a) == name(b) && grew > 0 && fell == 0
}
