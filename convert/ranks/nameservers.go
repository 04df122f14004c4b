package ranks

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// nameServers returns the names that logs and metrics use for the servers of requests, by host, so that reports show all data of one
// server together. Traces have machine IDs, while logs and metrics have pod names. They are matched by the addresses that a gateway
// sent requests to, or else by prompts that both computed or counted. A host with several servers keeps its name.
func (m *Assignment) nameServers(requests *request.Set, set *series.Set) naming.HostNames {
	names := naming.HostNames{}
	if set.Empty() {
		return names
	}
	shared := sharedHosts(requests)
	var said []string
	learn := func(by string, found naming.HostNames) {
		var list []string
		for host, name := range found {
			if name != "" && name != host && !shared[host] && names[host] == "" {
				names[host] = name
				list = append(list, fmt.Sprintf("%s is %s", requests.Names.Host(host), name))
			}
		}
		if slices.Sort(list); len(list) > 0 {
			said = append(said, some(list, 4)+", by "+by)
		}
	}
	learn("the address that the gateway sends requests to", byAddress(requests, set))
	learn("the prompts that both have computed", byPrompts(requests, set))
	learn("the tokens of prompts that both count", byCounters(requests, set))
	if len(said) > 0 {
		m.diags.Add(trace.HostsNamed.Of("", strings.Join(said, "; ")))
	}
	return names
}

// sharedHosts returns the hosts on which several servers answered requests, and "".
func sharedHosts(requests *request.Set) map[string]bool {
	shared, servers := map[string]bool{"": true}, map[string]int{}
	for i := range requests.Parts {
		if p := requests.Parts[i].Proc; p != request.None {
			host, server := requests.Procs[p].Host, requests.Server(p)
			if first, ok := servers[host]; !ok {
				servers[host] = server
			} else if first != server {
				shared[host] = true
			}
		}
	}
	return shared
}

// byAddress names hosts by the addresses to which a gateway sent requests that they answered.
func byAddress(requests *request.Set, set *series.Set) naming.HostNames {
	hosts := naming.HostNames{} // by URL
	requests.EachServedURL(func(url string, proc int) { hosts.Learn(url, requests.Procs[proc].Host) })
	names := naming.HostNames{}
	for url, host := range hosts {
		_, address, found := strings.Cut(url, "://")
		if !found {
			address = url
		}
		address, _, _ = strings.Cut(address, "/")
		if name := set.Listening(address); name != "" {
			names.Learn(host, name)
		}
	}
	return names
}

// A computed is a prompt that a server computed, with its time, according to a trace.
type computed struct {
	host     string
	from, to trace.Time
}

// byPrompts names hosts by matching prompt sizes: a server's log reports computing as many tokens as a host computed at
// that time. A few dozen prompts identify a host, unless clients send prompts of equal length.
func byPrompts(requests *request.Set, set *series.Set) naming.HostNames {
	prompts := map[int64][]computed{} // by number of uncached tokens
	for i := range requests.AllRequests() {
		for _, p := range requests.PartsOf(&requests.Requests[i]) {
			part := &requests.Parts[p]
			if n := part.PromptTokens - max(0, part.CachedTokens); part.Proc != request.None && part.Role != request.Decode && part.PromptTokens > 0 && n > 0 {
				prompts[n] = append(prompts[n], computed{requests.Procs[part.Proc].Host, part.Start, part.End})
			}
		}
	}
	equal := map[string]map[string]int{} // by server and host, the number of matching prompts
	for i := range set.List {
		x := &set.List[i]
		if x.Metric != series.NewTokens || x.Label != 0 {
			continue
		}
		name := set.Servers[set.Places[x.Place].Server].Called()
		if equal[name] == nil {
			equal[name] = map[string]int{}
		}
		for sample := range set.Each(i) {
			for _, host := range whoComputed(prompts[int64(sample.Value)], sample) {
				equal[name][host]++
			}
		}
	}
	names := naming.HostNames{}
	for name, hosts := range equal {
		if host := clearly(hosts); host != "" {
			names.Learn(host, name)
		}
	}
	return names
}

// whoComputed returns the hosts that computed one of the prompts at about the time of a log line.
func whoComputed(prompts []computed, line series.Sample) (hosts []string) {
	const about = trace.Time(1e9) // clocks of one machine agree, and log stamps have a resolution of seconds
	for _, c := range prompts {
		if line.Time+trace.Time(line.Within())+about >= c.from && line.Time <= c.to+about && !slices.Contains(hosts, c.host) {
			hosts = append(hosts, c.host)
		}
	}
	return hosts
}

// clearly returns the host with by far the most matches; "" if there is none.
func clearly(hosts map[string]int) (host string) {
	const few, more = 12, 5
	most, second := 0, 0
	for h, n := range hosts {
		if n > most {
			most, second, host = n, most, h
		} else {
			second = max(second, n)
		}
	}
	if most < few || most < more*second {
		return ""
	}
	return host
}

// some lists a few of many texts.
func some(list []string, few int) string {
	text := strings.Join(list[:min(few, len(list))], ", ")
	if more := len(list) - few; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// A served is a request's prompt, and when its server counted it.
type served struct {
	at     trace.Time
	tokens int64
}

// byCounters names hosts by matching token counts: between scrapes, a server's counter grows by as many tokens as the prompts
// of a host's requests have. Servers count a prompt when they compute it (vLLM), or when the request ends (SGLang).
func byCounters(requests *request.Set, set *series.Set) naming.HostNames {
	hosts := map[string]*[2][]served{} // by time of computation, and by end of the request
	for i := range requests.AllRequests() {
		for _, p := range requests.PartsOf(&requests.Requests[i]) {
			part := &requests.Parts[p]
			if part.Proc == request.None || part.Role == request.Decode || part.PromptTokens <= 0 {
				continue
			}
			of := order.Memo(hosts, requests.Procs[part.Proc].Host, func() *[2][]served { return &[2][]served{} })
			of[0] = append(of[0], served{part.Start + trace.Time(max(0, part.TTFT)), part.PromptTokens})
			of[1] = append(of[1], served{part.End, part.PromptTokens})
		}
	}
	for _, of := range hosts {
		for _, list := range of {
			slices.SortFunc(list, func(a, b served) int { return cmp.Compare(a.at, b.at) })
		}
	}
	names := naming.HostNames{}
	for name, counter := range counters(set) {
		best, second, host := math.Inf(1), math.Inf(1), ""
		for h, of := range hosts {
			off := min(differs(counter, of[0]), differs(counter, of[1]))
			if off < best {
				best, second, host = off, best, h
			} else {
				second = min(second, off)
			}
		}
		const about, more = 0.1, 3 // a request near a scrape may count on either side of it
		if best <= about && second >= more*best {
			names.Learn(host, name)
		}
	}
	return names
}

// counters returns the counters of prompt tokens by server name, as growth between scrapes.
func counters(set *series.Set) map[string]map[trace.Time]step {
	list := map[string]map[trace.Time]step{}
	for i := range set.List {
		x := &set.List[i]
		if !strings.HasSuffix(set.Metric(x.Metric).Name, "prompt_tokens_total") {
			continue
		}
		name := set.Servers[set.Places[x.Place].Server].Called()
		if list[name] == nil {
			list[name] = map[trace.Time]step{}
		}
		var last series.Sample
		for s := range set.Each(i) {
			if last.Time != 0 && s.Value >= last.Value {
				x := list[name][s.Time]
				list[name][s.Time] = step{last.Time, x.grew + s.Value - last.Value}
			}
			last = s
		}
	}
	return list
}

// A step is the growth of a counter since the previous scrape.
type step struct {
	from trace.Time
	grew float64
}

// differs returns the relative difference, in [0, 1], between a server's counted tokens and those that a host served
// between the same scrapes; 1 if there are too few scrapes.
func differs(counter map[trace.Time]step, list []served) float64 {
	const few = 8
	index := func(t trace.Time) int {
		k, _ := slices.BinarySearchFunc(list, t, func(x served, t trace.Time) int { return cmp.Compare(x.at, t+1) })
		return k
	}
	off, all, n := 0.0, 0.0, 0
	for to, s := range counter {
		sum := 0.0
		for _, x := range list[index(s.from):index(to)] {
			sum += float64(x.tokens)
		}
		if sum+s.grew > 0 {
			n++
		}
		off, all = off+math.Abs(sum-s.grew), all+sum+s.grew
	}
	if n < few {
		return 1
	}
	return off / all
}
