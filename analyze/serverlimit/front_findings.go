package serverlimit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A process is reported if it keeps requests for minCost of their time, and either in at least fewSpells spells or
// for minSpells of the capture. A single hiccup is not.
const (
	minCost   = 0.01
	minSudden = 0.005 // if it has an onset
	fewSpells = 8
	minSpells = 0.05
	fewShown  = 0.01 // least share of the time that is worth a sentence
	minAlways = 0.05 // of a gateway that always does so: it may be far from its servers
)

// Subkinds of findings, by process and duty.
const (
	Gateway   = "gateway"
	Tokenizer = "tokenizer"
	Answering = "answering"
	Returning = "returning"
	Path      = "path" // between a gateway and a server, not a process
	Held      = "held back"
)

// duties describe findings about each duty: the subkind, the name of the metric, and the causes that the time is
// charged to.
var duties = [...]struct {
	subkind, metric string
	causes          []cause.Cause
}{
	sends:     {Gateway, "time at the gateway", inFront},
	tokenizes: {Tokenizer, "time at the tokenizer", []cause.Cause{cause.Dispatch, cause.Unaccounted, cause.Router}},
	answers:   {Answering, "time to answer", []cause.Cause{cause.Return}},
	returns:   {Returning, "time to return", []cause.Cause{cause.Router}},
	schedules: {Held, "time held back", []cause.Cause{cause.Queue}},
	around:    {Gateway, "time outside of servers", []cause.Cause{cause.Router}},
}

var inFront = []cause.Cause{cause.Router, cause.Dispatch, cause.Unaccounted}

// Findings returns which gateways and tokenizers keep requests longer than they should, and whether there are enough
// requests to say so.
func (f *Front) Findings(b *cause.Costs) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "gateways and tokenizers", Of: "finished request", N: f.Visits, Needed: fewVisits}
	if len(f.Desks) == 0 {
		check.Reason = "no gateway or tokenizer was traced"
	}
	var out []finding.Finding
	busy := map[place.Location]int{} // indexes into out of tokenizers
	desks := f.together(b)
	for _, d := range desks {
		cost := b.Part(float64(d.extra()))
		if k, ok := busy[d.Location]; ok && d.duty == answers { // the same process, whose claim includes the answers
			out[k].Evidence = append(out[k].Evidence, finding.Sentence("%s", d.text()))
			continue
		}
		if d.duty == tokenizes {
			busy[d.Location] = len(out)
		}
		out = append(out, f.finding(d, b, min(1, cost)))
	}
	return f.bothWays(desks, out), check
}

// bothWays makes one finding of requests that reach a server late and of its answers that leave the gateway late: the path is longer.
func (f *Front) bothWays(desks []*FrontProcess, out []finding.Finding) []finding.Finding {
	for _, d := range desks {
		if d.duty != returns {
			continue
		}
		there := func(x *finding.Finding) bool { return x.Subkind == Path && f.toOne(d) == " to "+x.At.Group() }
		back := func(x *finding.Finding) bool { return x.Subkind == Returning && x.Since == d.Since }
		i, k := slices.IndexFunc(out, func(x finding.Finding) bool { return there(&x) }), slices.IndexFunc(out, func(x finding.Finding) bool { return back(&x) })
		if i < 0 || k < 0 || out[i].Since-d.Latest > d.Latest-d.Earliest || d.Earliest-out[i].Since > d.Latest-d.Earliest {
			continue
		}
		x := &out[i]
		x.Text += fmt.Sprintf("; and its answers leave the gateway %s after it is done with them: the way is longer in both directions", words.Nearly(d.mean()))
		x.Claim, x.Cost = x.Claim.And(out[k].Claim), x.Cost+out[k].Cost
		out = slices.Delete(out, k, k+1)
	}
	return out
}

// together returns the desks worth reporting. The desks of several servers of a role become one if they kept requests
// since about the same time.
func (f *Front) together(b *cause.Costs) (out []*FrontProcess) {
	for _, d := range f.Desks {
		cost := b.Part(float64(d.extra()))
		if cost < minCost && (cost < minSudden || d.Since == 0) || !d.again() || d.isOvertaken() || d.creeps() || d.always && (cost < minAlways || d.duty == around && d.waits() < mostly) {
			continue
		}
		k := slices.IndexFunc(out, d.isLike)
		if k < 0 || d.isGateway() {
			one := *d
			one.of = []place.Location{d.Location}
			out = append(out, &one)
			continue
		}
		out[k].join(d)
	}
	for _, d := range out {
		for _, o := range f.Desks {
			if o.duty == d.duty && o.Location.Role == d.Location.Role {
				d.peers = append(d.peers, o.Location)
			}
		}
	}
	return out
}

// isLike reports whether two desks may keep requests for the same reason.
func (d *FrontProcess) isLike(o *FrontProcess) bool {
	const soon = trace.Time(2e9)
	return d.duty == o.duty && d.Location.Role == o.Location.Role && (d.Since == 0) == (o.Since == 0) && (d.Until == 0) == (o.Until == 0) &&
		d.Earliest <= o.Latest+soon && o.Earliest <= d.Latest+soon
}

// join adds the desk of another server to d.
func (d *FrontProcess) join(o *FrontProcess) {
	d.kept, d.visits, d.after = slices.Concat(d.kept, o.kept), slices.Concat(d.visits, o.visits), d.after+o.after
	d.Usual = max(d.Usual, o.Usual)
	switch from, to := max(d.Earliest, o.Earliest), min(d.Latest, o.Latest); {
	case from <= to: // at the same time, as far as both are known
		if o.Latest-o.Earliest < d.Latest-d.Earliest {
			d.Since = o.Since
		}
		d.Since, d.Earliest, d.Latest = min(max(d.Since, from), to), from, to
	case o.Since < d.Since:
		d.Since, d.Earliest, d.Latest = o.Since, o.Earliest, o.Latest
	}
	d.Until, d.P = max(d.Until, o.Until), min(d.P, o.P)
	if d.of = append(d.of, o.Location); d.servers() > 1 {
		d.Location = place.Location{Scope: place.WholeRole, Role: d.Location.Role}
	} else {
		d.Location = serverOf(&d.Location)
	}
}

// serverOf returns the location of the server of a desk.
func serverOf(at *place.Location) place.Location {
	server := *at
	server.Label, server.Rank = "", trace.NoRank
	return server
}

// servers returns how many servers have the desks.
func (d *FrontProcess) servers() int { return countServers(d.of) }

func countServers(desks []place.Location) int {
	servers := map[place.Location]bool{}
	for i := range desks {
		servers[serverOf(&desks[i])] = true
	}
	return len(servers)
}

// onServer returns how many of some desks are on the server of d.
func (d *FrontProcess) onServer(desks []place.Location) int {
	server := serverOf(&d.of[0])
	return len(order.OnlyRows(desks, func(at *place.Location) bool { return serverOf(at) == server }))
}

// extra returns how long the desk kept requests beyond the usual, in ns, summed over requests.
func (d *FrontProcess) extra() int64 {
	return order.SumRows(d.kept, func(v *visit) int64 { return v.ns() - d.Usual })
}

// again reports whether the desk kept requests repeatedly or for long.
func (d *FrontProcess) again() bool {
	if len(d.visits) == 0 {
		return false
	}
	spells, busy := spellsOf(d.kept)
	length := d.visits[len(d.visits)-1].at - d.visits[0].at
	return len(spells) >= fewSpells || float64(busy) >= minSpells*float64(length)
}

// spellsOf returns when the separate spells began in which a desk kept visits, and their total length.
func spellsOf(kept []visit) (starts []trace.Time, busy trace.Time) {
	until := trace.Time(0)
	for i := range kept {
		from, to := kept[i].at, kept[i].at+trace.Time(kept[i].ns())
		if from > until {
			starts = append(starts, from)
		}
		busy += max(0, to-max(from, until))
		until = max(until, to)
	}
	return starts, busy
}

// isGateway reports whether the desk belongs to a gateway.
func (d *FrontProcess) isGateway() bool {
	return d.duty == sends || d.duty == returns || d.duty == around
}

// isOvertaken reports whether most requests that a server's process kept were overtaken by requests that came later.
// Then it was not too busy, but held back some requests, such as those of one tenant. It is never true for a gateway,
// or a scheduler, which handle many requests at a time and may keep any of them.
func (d *FrontProcess) isOvertaken() bool {
	if d.isGateway() || d.duty == schedules {
		return false
	}
	overtaken, next := 0, 0
	for i := range d.kept {
		end := d.kept[i].at + trace.Time(d.kept[i].ns())
		for next < len(d.visits) && d.visits[next].at <= d.kept[i].at {
			next++
		}
		for k := next; k < len(d.visits) && d.visits[k].at < end; k++ {
			if v := &d.visits[k]; v.ns() < d.Limit && v.at+trace.Time(v.ns()) < end {
				overtaken++
				break
			}
		}
	}
	return 2*overtaken > len(d.kept)
}

// finding makes the finding of a desk.
func (f *Front) finding(d *FrontProcess, b *cause.Costs, cost float64) finding.Finding {
	amounts := map[int]int64{}
	var requests []int
	for i := range d.kept {
		amounts[d.kept[i].request] = d.kept[i].ns() - d.Usual
		requests = append(requests, d.kept[i].request)
	}
	of := &duties[d.duty]
	if d.duty == around {
		d.toward = f.toOne(d)
	}
	claim := b.Amounts(amounts, of.causes...)
	if d.duty == tokenizes { // the same process also delays the answers
		claim = claim.And(b.Beyond(requests, cause.Return))
	}
	subkind, metric := of.subkind, of.metric
	if d.isPath() {
		subkind, metric = Path, "time on the way to the server"
	}
	out := finding.Finding{
		Subkind: subkind, At: d.Location, Since: d.Since, Until: d.Until, Text: d.text(), P: finding.Chance(d.P), Cost: cost,
		Claim: claim, Affected: finding.AffectedOf(f.set, requests),
		Metric: finding.Metric{Name: metric, Unit: table.Duration, Before: float64(d.Usual), After: float64(d.mean())},
	}
	switch {
	case d.Since == 0, d.duty == schedules: // nobody says that there was room
		out.P = finding.Chance(math.NaN())
	case !math.IsNaN(d.P):
		out.Evidence = append(out.Evidence, finding.ByChance(d.P))
	}
	if said := d.shownBy(); said != "" {
		out.Evidence = append(out.Evidence, finding.Sentence("%s", said))
	}
	out.Evidence = append(out.Evidence, finding.Sentence("for example %s", place.SomeRequests(f.set, requests)))
	return out
}

// shownBy says which spans show the time that a desk kept requests. It is empty for a tokenizer whose own spans show
// it.
func (d *FrontProcess) shownBy() string {
	switch wait := d.waits(); {
	case d.duty == sends:
		return "that is from the start of the gateway's span until it records that it sends the request, by one clock; no server sees this time"
	case d.duty == returns:
		return "the server's span ends first, the gateway's only after that time: clients that read slowly, or something between them and the gateway; no server is at fault"
	case d.duty == around:
		return fmt.Sprintf("the gateway's span is that much longer than the server's; %s %% of that time is before the server's span, as far as their clocks agree; the gateway does not record when it sends a request, so it may also be the network to the server, or the server's listener",
			words.InPercent(d.waits()))
	case d.duty == schedules:
		return "no prompt was computed there meanwhile, and fewer requests, with fewer tokens, ran there than at other times"
	case d.duty == answers:
		return "the scheduler is done before that time, the server's span ends only after it: the detokenizer or the HTTP server is too busy"
	case d.isPath():
		return "that is from when the gateway sends them, as far as the clocks of the two agree; the server begins with them only then, and its tokenizer is idle for most of that time"
	case wait >= fewShown:
		return fmt.Sprintf("%s %% of that time passes before the server's span begins; only the gateway's span shows it", words.InPercent(wait))
	}
	return ""
}

// mean returns how long the desk kept a request on average, in ns.
func (d *FrontProcess) mean() int64 { return distribution.FloorDiv(d.total(), int64(len(d.kept))) }

// total returns the time at the desk of all requests that it kept, in ns.
func (d *FrontProcess) total() int64 { return d.extra() + int64(len(d.kept))*d.Usual }

// waits returns the share of the time of kept requests that passes before the process begins.
func (d *FrontProcess) waits() float64 {
	wait := int64(0)
	for i := range d.kept {
		wait += d.kept[i].wait
	}
	return float64(wait) / float64(max(1, d.total()))
}

// isPath reports whether a tokenizer was idle for most of the time for which requests waited for it, and which is nearly all of what they
// took there: one that is too busy works on those that came before.
func (d *FrontProcess) isPath() bool {
	idle := order.SumRows(d.kept, func(v *visit) int64 { return v.idle })
	return d.duty == tokenizes && d.waits() >= mostly && 2*idle > d.total()
}

// creeps reports whether requests reached an idle server later and later, so that most of their delay was there before any was long: two
// clocks that drift apart look like that, and a way that got longer does not.
func (d *FrontProcess) creeps() bool {
	const few = fewVisits / 4
	first, _ := slices.BinarySearchFunc(d.visits, d.Since, func(v visit, at trace.Time) int { return cmp.Compare(v.at, at) })
	if first < few || len(d.kept) < few || !d.isPath() {
		return false
	}
	middle := func(list []visit) int64 {
		return distribution.LowerMedian(order.Each(list, func(v visit) int64 { return v.ns() }))
	}
	return 2*(middle(d.kept[:few])-middle(d.visits[first-few:first])) < d.mean()-d.Usual
}

// text says in a sentence which process keeps requests, what share of them, and since when.
func (d *FrontProcess) text() string {
	since := ""
	if d.Since != 0 {
		since = " since " + words.When(d.Since, d.Earliest, d.Latest)
	}
	if d.Until != 0 {
		from, to := words.Tenths(d.Since, d.Until)
		since = " between " + from + " and " + to
	}
	if d.every != 0 {
		since += ", every " + words.Nearly(int64(d.every*1e9)) + ","
	}
	share := words.InPercent(float64(len(d.kept)) / float64(max(1, d.after)))
	long, usual := words.Nearly(d.mean()), "usually it is "+words.Nearly(d.Usual)
	switch {
	case d.always:
		usual = "this holds from start to end"
	case d.Usual == 0:
		usual = "usually they leave immediately"
	}
	switch d.duty {
	case sends:
		return fmt.Sprintf("the gateway %s %s %% of the requests%s for %s on average before it sends them to a server; %s", d.verb("holds", "has held", "held"), share, since, long, usual)
	case returns:
		return fmt.Sprintf("%s %% of the answers%s leave the gateway %s after the server is done with them, on average; %s", share, since, long, usual)
	case around:
		where := "before or after a server has them"
		switch before := d.waits(); {
		case before >= mostly:
			where = "before a server has them"
		case before <= 1-mostly:
			where = "after the server is done with them"
		}
		return fmt.Sprintf("%s %% of the requests%s are in the gateway, or on the way%s, for %s on average %s; %s", share, since, d.toward, long, where, usual)
	case schedules:
		verb := d.verb("holds", "has held", "held")
		if d.servers() > 1 {
			verb = d.verb("hold", "have held", "held")
		}
		return fmt.Sprintf("%s %s %s %% of the requests back%s for %s on average, although there was room for them (%s?); %s",
			d.server(), verb, share, since, long, d.why, usual)
	case answers:
		verb := d.verb("answers", "has answered", "answered")
		if d.servers() > 1 {
			verb = d.verb("answer", "have answered", "answered")
		}
		return fmt.Sprintf("%s %s late%s: %s %% of the requests there take %s on average from the scheduler's last step until the answer is out; %s",
			d.server(), verb, since, share, long, usual)
	}
	if d.isPath() {
		return fmt.Sprintf("requests %s %s late%s: %s %% of them take %s on average until they are tokenized, though the tokenizer has nothing else to do (is it the network, or the listener?); %s",
			d.verb("reach", "have reached", "reached"), d.server(), since, share, long, usual)
	}
	return fmt.Sprintf("%s too busy%s: %s %% of the requests there take %s on average to be tokenized and handed to the scheduler; %s",
		d.tokenizers(), since, share, long, usual)
}

// tokenizers says which tokenizers are too busy: "2 of 4 tokenizers of unified (5f1d3c0a) are".
func (d *FrontProcess) tokenizers() string {
	one, several := " "+d.verb("is", "has been", "was"), " "+d.verb("are", "have been", "were")
	n, all := len(d.of), d.onServer(d.peers)
	switch {
	case d.servers() > 1, n == all && n > 1:
		return "the tokenizers of " + d.server() + several
	case all <= 1:
		return "the tokenizer of " + d.server() + one
	case n == 1:
		return fmt.Sprintf("%s, one of %d tokenizers of %s,%s", d.of[0].Label, all, d.server(), one)
	}
	return fmt.Sprintf("%d of %d tokenizers of %s%s", n, all, d.server(), several)
}

// verb chooses a verb: for what is so all the time, since some time, or between two times.
func (d *FrontProcess) verb(always, since, between string) string {
	switch {
	case d.Until != 0:
		return between
	case d.Since != 0:
		return since
	}
	return always
}

// mostly is the share from which one server is the place.
const mostly = 0.9

// toOne names the server that nearly all the kept requests of a gateway were for. It returns "" if there is none, or
// if that server got most of all requests anyway.
func (f *Front) toOne(d *FrontProcess) string {
	serverOf := func(v *visit) int { return f.set.Parts[f.set.Answering(&f.set.Requests[v.request])].Proc }
	count := map[int]int{}
	most := request.None
	for i := range d.kept {
		proc := serverOf(&d.kept[i])
		if count[proc]++; count[proc] > count[most] {
			most = proc
		}
	}
	all := order.CountRows(d.visits, func(v *visit) bool { return serverOf(v) == most })
	if float64(count[most]) < mostly*float64(len(d.kept)) || 3*all > 2*len(d.visits) {
		return ""
	}
	return " to " + place.NewLocation(f.set, most).Group()
}

// server names the servers of a desk.
func (d *FrontProcess) server() string {
	switch n, all := d.servers(), countServers(d.peers); {
	case n == 2 && all == 2:
		return fmt.Sprintf("both %s servers", d.Location.Role)
	case n > 1 && n == all:
		return fmt.Sprintf("all %d %s servers", n, d.Location.Role)
	case n > 1:
		return fmt.Sprintf("%d of %d %s servers", n, all, d.Location.Role)
	case d.duty == schedules:
		return d.Location.DP()
	}
	return serverOf(&d.Location).Group()
}
