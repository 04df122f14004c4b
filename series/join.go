package series

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// same identifies servers that appear in several kinds of inputs: the log of a pod, its records, and its
// metrics. It maps each of them to the server of the log. They are the same server if they have the same
// name, ignoring folders, and nothing else has it.
func (s *Set) same() map[int32]int32 {
	const logs, records, metrics, kinds = 0, 1, 2, 3
	byName := map[string][kinds][]int32{}
	kindOf := s.kinds()
	for i := range s.Servers {
		kind, ok := kindOf[int32(i)]
		if !ok {
			continue
		}
		for _, name := range s.aliases(int32(i), kindOf) {
			list := byName[name]
			list[kind] = append(list[kind], int32(i))
			byName[name] = list
		}
	}
	of := map[int32]int32{}
	names := map[string]int32{} // servers by a name that no other server has
	for name, list := range byName {
		if len(list[logs]) > 1 || len(list[records]) > 1 || len(list[metrics]) > 1 {
			continue
		}
		all := slices.Concat(list[:]...)
		for _, x := range all[1:] {
			of[x] = all[0]
		}
		names[name] = all[0]
	}
	s.called(of, names, kindOf)
	return of
}

// called identifies servers that other inputs refer to: those that routers name by address or by pod, and
// pods whose host an orchestrator reports.
func (s *Set) called(of map[int32]int32, names map[string]int32, kinds map[int32]int) {
	root := func(i int32) int32 {
		if to, ok := of[i]; ok {
			return to
		}
		return i
	}
	listens := map[string]int32{} // -1 if several
	for i := range s.Servers {
		if _, ok := kinds[int32(i)]; !ok || s.Servers[i].Address == "" {
			continue
		}
		address, to := s.Servers[i].Address, root(int32(i))
		if known, ok := listens[address]; ok && known != to {
			to = -1
		}
		listens[address] = to
	}
	for i := range s.Servers {
		x := &s.Servers[i]
		if _, ok := kinds[int32(i)]; ok || x.Name == "" {
			continue
		}
		to, ok := listens[x.Name]
		if !ok {
			pod := podOf(x.Name)
			if to, ok = names[pod]; !ok || pod == "" {
				continue
			}
		}
		if to < 0 {
			continue
		}
		of[int32(i)] = to
		if log := &s.Servers[to]; log.Host == "" {
			log.Host = x.Host
		}
	}
}

// Listening returns the name of the server at an address, "10.0.0.9:30000" or "decode-0.decode.llm.svc:30000"; "" if it
// is unknown or ambiguous.
func (s *Set) Listening(address string) (called string) {
	pod := podOf(address)
	for i := range s.Servers {
		x := &s.Servers[i]
		if x.Address != address && x.Name != address && (x.Name != pod || pod == "") {
			continue
		}
		if name := x.Called(); called != "" && called != name {
			return ""
		} else {
			called = name
		}
	}
	return called
}

// podOf returns the pod in an address, "decode-0" in "decode-0.decode.llm.svc:30000"; "" for an IP address.
func podOf(address string) string {
	host, _, _ := strings.Cut(address, ":")
	pod, _, _ := strings.Cut(host, ".")
	if strings.Trim(pod, "0123456789") == "" {
		return ""
	}
	return pod
}

// kinds returns the kind of input that a server appears in: 0 for a log with batches, 1 for records, 2 for
// metrics. A host that appears only through its devices has none.
func (s *Set) kinds() map[int32]int {
	kinds := map[int32]int{}
	for i := range s.Sources {
		src := &s.Sources[i]
		for p := range src.About() {
			server := s.Places[p].Server
			switch {
			case !src.IsLog() && s.Servers[server].Engine != "" && src.Encoding != "kernel log":
				kinds[server] = 2
			case src.Encoding == "server log":
				kinds[server] = 1
			}
		}
	}
	for i := range s.List {
		if server := s.Places[s.List[i].Place].Server; kinds[server] == 1 {
			kinds[server] = 0
		}
	}
	for i := range s.Instants {
		if server := s.Places[s.Instants[i].Place].Server; kinds[server] == 1 {
			kinds[server] = 0
		}
	}
	return kinds
}

// aliases returns the names by which inputs may refer to a server: its own, without folders, and that of
// its host if the host has no other server.
func (s *Set) aliases(i int32, kinds map[int32]int) []string {
	x := &s.Servers[i]
	list := []string{x.Name[strings.LastIndexByte(x.Name, '/')+1:]}
	if x.Host == "" || x.Host == list[0] {
		return list
	}
	for k := range s.Servers {
		if _, ok := kinds[int32(k)]; ok && int32(k) != i && s.Servers[k].Host == x.Host {
			return list
		}
	}
	return append(list, x.Host)
}

// join merges servers that are the same, and returns the series to which the samples of each series belong.
// Metrics that the log also has are dropped: they repeat its last line at another time.
func (s *Set) join(same map[int32]int32) (moved []int32) {
	for i, to := range same {
		x, log := &s.Servers[i], &s.Servers[to]
		if log.Role == "" || log.Role == "unified" && x.Role != "" {
			log.Role = x.Role
		}
		log.Address = cmp.Or(log.Address, x.Address)
	}
	for i, to := range same {
		s.Servers[i] = s.Servers[to]
	}
	moved = make([]int32, 0, len(s.List))
	for i := range s.List {
		moved = append(moved, int32(i))
	}
	kinds := s.kinds()
	logged := order.Set(s.List)
	for i := range moved {
		x := s.List[i]
		p := s.Places[x.Place]
		to, ok := same[p.Server]
		if !ok {
			continue
		}
		p.Server = to
		p.Rank = s.rankAs(p.Rank, to)
		if x.Place = indexOf(s.placeOf, &s.Places, p); logged[x] && kinds[to] != 2 {
			moved[i] = -1
			continue
		}
		id := indexOf(s.seriesOf, &s.List, x)
		moved[i] = id
		for int(id) >= len(moved) {
			moved = append(moved, int32(len(moved)))
		}
	}
	for i := range s.Instants {
		p := s.Places[s.Instants[i].Place]
		if to, ok := same[p.Server]; ok {
			p.Server = to
			s.Instants[i].Place = indexOf(s.placeOf, &s.Places, p)
		}
	}
	return moved
}

// rankAs returns the rank in a server's log that is rank r in its metrics: logs omit dimensions of size 1, and
// metrics call them 0.
func (s *Set) rankAs(r trace.Rank, server int32) trace.Rank {
	best, found := r, false
	for i := range s.Places {
		p := &s.Places[i]
		if p.Server != server || p.GPU != NoGPU {
			continue
		}
		fits := true
		for _, x := range [][2]int16{{p.Rank.DP, r.DP}, {p.Rank.PP, r.PP}, {p.Rank.TP, r.TP}, {p.Rank.EP, r.EP}} {
			fits = fits && (x[0] == x[1] || x[0] < 0 && x[1] <= 0)
		}
		if fits && (!found || p.Rank.Known() > best.Known()) {
			best, found = p.Rank, true
		}
	}
	return best
}

// offsets are the offsets of time zones: whole hours, and a few others in quarters of an hour.
var offsets = func() (list []time.Duration) {
	for h := -12; h <= 14; h++ {
		list = append(list, time.Duration(h)*time.Hour)
	}
	for _, q := range []int{-38, -14, 14, 18, 22, 23, 26, 35, 38, 42, 51} {
		list = append(list, time.Duration(q)*quarter)
	}
	return list
}()

// A level is a value that holds from some time on.
type level struct {
	at    trace.Time
	value float64
}

// lastBefore returns the last value up to a time; ok is false before the first value and after the last one.
func lastBefore(list []level, at trace.Time) (value float64, ok bool) {
	i, _ := slices.BinarySearchFunc(list, at+1, func(l level, t trace.Time) int { return int(min(1, max(-1, l.at-t))) })
	if i == 0 || i == len(list) {
		return 0, false
	}
	return list[i-1].value, true
}

// agrees finds the zone in which a log's values match the metrics of its server. Prometheus reports what
// the log's last line said, so in any other zone they differ whenever the load changes.
func (s *Set) agrees(src *Source, same map[int32]int32) (east time.Duration, ok bool) {
	type key struct {
		server int32
		dp     int16
	}
	lines, scrapes := map[key][]level{}, map[key][]level{} // by the server of the log
	each := func(source int, yield func(k key, l level)) {
		for i := range s.List {
			if s.List[i].Metric == Running {
				p := &s.Places[s.List[i].Place]
				for x := range s.from(uint32(source), i) {
					yield(key{p.Server, max(0, p.Rank.DP)}, level{x.Time, x.Value})
				}
			}
		}
	}
	for i := range s.Sources {
		if !s.Sources[i].IsLog() {
			each(i, func(k key, l level) {
				if to, ok := same[k.server]; ok {
					k.server = to
					scrapes[k] = append(scrapes[k], l)
				}
			})
		}
	}
	for i := range s.Sources {
		if &s.Sources[i] == src && len(scrapes) > 0 {
			each(i, func(k key, l level) { lines[k] = append(lines[k], l) })
		}
	}
	for _, list := range lines { // from several places
		slices.SortStableFunc(list, func(a, b level) int { return cmp.Compare(a.at, b.at) })
	}
	best, next := math.Inf(1), math.Inf(1)
	const few = 8
	for _, off := range offsets {
		apart, n := 0.0, 0
		for at, list := range lines {
			for _, m := range scrapes[at] {
				if said, ok := lastBefore(list, m.at+trace.Time(off)); ok {
					apart += math.Abs(m.value - said)
					n++
				}
			}
		}
		if n < few {
			continue
		}
		switch mean := apart / float64(n); {
		case mean < best:
			best, next, east = mean, best, off
		case mean < next:
			next = mean
		}
	}
	return east, best < next/2
}
