package cluster

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// All is every server.
const All = -1

// Fault is a problem, or just a change. The table of faults defines the meanings of Size, Share, Every, and Other.
type Fault struct {
	Name          string
	Server, Other int           // which one, or All
	At            time.Duration // since the start of the run
	Size, Share   float64
	Every         time.Duration
	For           time.Duration // duration of slower steps; 0 is to the end; with Every, they repeat
}

// faults are all faults that can be planted, with what each does to a planned run.
var faults = map[string]struct {
	doc   string
	plant func(s *sim, f *Fault)
}{
	"slow steps":     {"all steps take Size times as long", slowSteps},
	"slow decode":    {"decode steps take Size times as long", slowDecode},
	"growth":         {"decode steps take Size longer with each minute: 0.01 is 1 %; with Share until they take that much longer", growth},
	"stalls":         {"every Every a step takes Size seconds longer", stalls},
	"warm-up":        {"steps take 1 + Size times as long at first, which fades with the time constant Every", warmUp},
	"restart":        {"drains, is away for Every, then comes back with other pids, or with Share 1 with the same; then steps take Size times as long", restart},
	"rolling deploy": {"all servers restart one after the other, away for Every each; then steps take Size times as long", deploy},
	"hang":           {"the scheduler hangs: when it has nothing to do, or with Share 1 at once", hang},
	"death":          {"all processes die at once, while there is a request; they come back after Every, if that is not 0", death},

	"long outputs":    {"answers have Size times as many tokens", longOutputs},
	"long prompts":    {"prompts have Size times as many tokens", longPrompts},
	"cold cache":      {"nothing is in the prefix cache", coldCache},
	"rejected drafts": {"of the drafted tokens that would be accepted only Share are", rejectedDrafts},
	"wave":            {"load sinks by up to Size and comes back, in each period of Every", wave},
	"burst":           {"Size more requests a second arrive, for Every", burst},
	"flood":           {"the first tenant sends Size more requests a second", flood},
	"sticky tenant":   {"the first tenant sends Size more requests a second, whose prompts have Share of the most tokens, all to Server", stickyTenant},
	"retries":         {"a Share of the clients that give up ask again after Every", retries},

	"gateway holds":  {"the gateway holds a Share of the requests for Size to twice that many seconds", gatewayHolds},
	"held back":      {"the scheduler holds a Share of the requests back for Size to twice that many seconds, before it queues them", heldBack},
	"slow tokenizer": {"tokenizing takes Size times as long", slowTokenizer},
	"late answers":   {"answers leave the server Size seconds after the last step of the scheduler", lateAnswers},
	"slow readers":   {"a Share of the clients read the answer for Size to twice that many seconds longer than the server writes it", slowReaders},
	"skewed routing": {"a Share of the requests of its role go to Server, out of turn", skewedRouting},
	"slow link":      {"KV takes about Size seconds longer from Server", slowLink},
	"throttling":     {"the clock of a GPU is lower, so that all steps take Size times as long; Share is why, in DCGM's bits", throttling},
	"crash":          {"the scheduler ends with an exception, Share says of which kind; it comes back after Every, if that is not 0", crash},

	"slow pair":  {"KV takes Size seconds longer from Server to Other", slowPair},
	"clock step": {"the clock of the server's host is set forward by Size seconds", clockStep},
}

// each calls plant for the servers of a fault.
func (f *Fault) each(s *sim, plant func(v *server)) {
	for _, v := range s.servers {
		if f.Server == All || f.Server == v.index {
			plant(v)
		}
	}
}

// begins calls plant for the servers of a fault when it begins.
func (f *Fault) begins(s *sim, plant func(v *server)) {
	f.each(s, func(v *server) { s.Agenda.At(f.since(s), func() { plant(v) }) })
}

// since returns the true time at which the fault begins.
func (f *Fault) since(s *sim) int64 { return s.run.Start + int64(f.At) }

// rng returns the fault's own random numbers.
func (f *Fault) rng(s *sim) *rand.Rand { return s.run.Config.stream(streamFault, int(f.At)) }

// paces plants a factor for steps of the servers, given the time since the fault began.
func (f *Fault) paces(s *sim, factor func(ns int64, decode bool) float64) {
	f.each(s, func(v *server) {
		v.pace = append(v.pace, func(at int64, decode bool) float64 {
			ns := at - f.since(s)
			if f.For > 0 && f.Every > 0 && ns > 0 {
				ns %= int64(f.Every)
			}
			if ns < 0 || f.For > 0 && ns >= int64(f.For) {
				return 1
			}
			return factor(ns, decode)
		})
	})
}

func slowSteps(s *sim, f *Fault) {
	f.paces(s, func(int64, bool) float64 { return f.Size })
}

func slowDecode(s *sim, f *Fault) {
	f.paces(s, func(_ int64, decode bool) float64 {
		if !decode {
			return 1
		}
		return f.Size
	})
}

func growth(s *sim, f *Fault) {
	f.paces(s, func(ns int64, decode bool) float64 {
		if !decode {
			return 1
		}
		longer := f.Size * float64(ns) / float64(time.Minute)
		if f.Share > 0 {
			longer = min(longer, f.Share)
		}
		return 1 + max(0, longer)
	})
}

func warmUp(s *sim, f *Fault) {
	f.paces(s, func(ns int64, _ bool) float64 { return 1 + f.Size*math.Exp(-float64(ns)/float64(f.Every)) })
}

func stalls(s *sim, f *Fault) {
	f.each(s, func(v *server) {
		done := int64(-1)
		v.pauses = append(v.pauses, func(at int64) int64 {
			if at < f.since(s) || (at-f.since(s))/int64(f.Every) == done {
				return 0
			}
			done = (at - f.since(s)) / int64(f.Every)
			return int64(f.Size * 1e9)
		})
	})
}

// again restarts a server, and calls then when it is back.
func again(v *server, f *Fault, then func()) {
	s := v.sim
	v.drain(func() {
		s.Agenda.At(s.Agenda.Now+20*ms, func() {
			v.stop()
			pid := s.run.Processes[v.life().Tokenizer].PID
			if f.Share != 1 {
				pid = 4000 + (pid+f.rng(s).IntN(40_000))%56_000
			}
			s.Agenda.At(s.Agenda.Now+int64(f.Every), func() {
				v.start(s.Agenda.Now, pid)
				if f.Size > 0 {
					v.pace = append(v.pace, func(int64, bool) float64 { return f.Size })
				}
				then()
			})
		})
	})
}

func restart(s *sim, f *Fault) {
	f.begins(s, func(v *server) { again(v, f, func() {}) })
}

func deploy(s *sim, f *Fault) {
	var next func(i int)
	next = func(i int) {
		if i == len(s.servers) {
			return
		}
		v := s.servers[i]
		again(v, f, func() { s.Agenda.At(s.Agenda.Now+2*second, func() { next(i + 1) }) })
	}
	s.Agenda.At(f.since(s), func() { next(0) })
}

func hang(s *sim, f *Fault) {
	f.begins(s, func(v *server) {
		if f.Share == 1 {
			v.hang()
			return
		}
		v.hangsIdle = true
		v.doWhenIdle()
	})
}

func death(s *sim, f *Fault) {
	var try func(v *server)
	try = func(v *server) {
		if len(v.jobs) == 0 {
			s.Agenda.At(s.Agenda.Now+ms, func() { try(v) })
			return
		}
		f.kill(v)
	}
	f.begins(s, try)
}

// kill makes all processes of a server die; they come back after Every, if that is not 0.
func (f *Fault) kill(v *server) {
	s := v.sim
	v.die()
	if f.Every > 0 {
		pid := s.run.Processes[v.life().Tokenizer].PID
		s.Agenda.At(s.Agenda.Now+int64(f.Every), func() { v.start(s.Agenda.Now, pid+1000) })
	}
}

// Faults returns the names of all faults, in order, each with a description.
func Faults() (names [][2]string) {
	for name, row := range faults {
		names = append(names, [2]string{name, row.doc})
	}
	slices.SortFunc(names, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	return names
}

// These faults change the arrivals.

// later calls change for the requests that arrive after the fault begins.
func (f *Fault) later(s *sim, change func(q *Request)) {
	for _, q := range s.planned {
		if q.Arrival >= f.since(s) {
			change(q)
		}
	}
}

func longOutputs(s *sim, f *Fault) {
	f.later(s, func(q *Request) {
		if s.run.Config.Pools[q.Pool].Embedding {
			return
		}
		q.Output = min(int(float64(q.Output)*f.Size), s.run.Config.Pools[q.Pool].Output.Max)
		if q.MaxTokens = max(q.MaxTokens, q.Output); q.Stop == "length" {
			q.MaxTokens = q.Output
		}
	})
}

func longPrompts(s *sim, f *Fault) {
	f.later(s, func(q *Request) {
		q.Prompt = min(int(float64(q.Prompt)*f.Size), s.run.Config.Pools[q.Pool].Prompt.Max)
		q.Cached = min(int(float64(q.Cached)*f.Size), q.Prompt-1)
	})
}

func coldCache(s *sim, f *Fault) {
	s.arrives = append(s.arrives, func(v *server, q *Request) {
		if s.Agenda.Now >= f.since(s) && v.role != Decode && (f.Server == All || f.Server == v.index) {
			q.Cached = 0
		}
	})
}

func rejectedDrafts(s *sim, f *Fault) {
	s.drafts = append(s.drafts, func() float64 {
		if s.Agenda.Now < f.since(s) {
			return 1
		}
		return f.Share
	})
}

func wave(s *sim, f *Fault) {
	rng := f.rng(s)
	s.planned = slices.DeleteFunc(s.planned, func(q *Request) bool {
		phase := 2 * math.Pi * float64(q.Arrival-f.since(s)) / float64(f.Every)
		return rng.Float64() < f.Size*(1+math.Cos(phase))/2
	})
}

// more plans additional requests at a rate, for length or to the end of the run.
func (f *Fault) more(s *sim, length time.Duration, change func(q *Request)) {
	rng := f.rng(s)
	end := s.run.Start + int64(s.run.Config.Length)
	if length > 0 {
		end = min(end, f.since(s)+int64(length))
	}
	for n, at := 0, f.since(s); ; n++ {
		if at += int64(rng.ExpFloat64() / f.Size * 1e9); at >= end {
			break
		}
		q := s.request(0, firstFlood+n, at)
		q.Extra = true
		change(q)
		s.planned = append(s.planned, q)
	}
	slices.SortStableFunc(s.planned, func(a, b *Request) int { return cmp.Compare(a.Arrival, b.Arrival) })
}

func burst(s *sim, f *Fault) { f.more(s, f.Every, func(*Request) {}) }

func flood(s *sim, f *Fault) { f.more(s, 0, func(q *Request) { q.Tenant = firstTenant }) }

func stickyTenant(s *sim, f *Fault) {
	f.more(s, 0, func(q *Request) {
		q.Tenant, q.Prompt, q.Cached = firstTenant, int(f.Share*float64(s.run.Config.Pools[q.Pool].Prompt.Max)), 0
	})
	s.skews = append(s.skews, func(q *Request, _ turnKey) *server {
		if !q.Extra {
			return nil
		}
		return s.servers[f.Server]
	})
}

func retries(s *sim, f *Fault) {
	rng, n := f.rng(s), 0
	s.retry = func(q *Request) {
		if rng.Float64() >= f.Share || s.Agenda.Now+int64(f.Every) >= s.run.Start+int64(s.run.Config.Length) {
			return
		}
		again := s.request(q.Pool, firstRetry+n, s.Agenda.Now+int64(f.Every))
		n++
		again.Extra = true
		again.Prompt, again.Cached, again.Output, again.MaxTokens, again.Stop, again.Tenant = q.Prompt, q.Cached, q.Output, q.MaxTokens, q.Stop, q.Tenant
		s.Agenda.At(again.Arrival, func() { s.arrive(again) })
	}
}

// These faults are between the clients and the schedulers.

func gatewayHolds(s *sim, f *Fault) {
	rng := f.rng(s)
	s.holds = append(s.holds, func(q *Request) int64 {
		held, length := rng.Float64() < f.Share, f.Size*(1+rng.Float64())
		if !held || q.Arrival < f.since(s) {
			return 0
		}
		return int64(length * 1e9)
	})
}

func heldBack(s *sim, f *Fault) {
	rng := f.rng(s)
	f.begins(s, func(v *server) {
		v.delays = append(v.delays, func(*Request) int64 {
			if held, length := rng.Float64() < f.Share, f.Size*(1+rng.Float64()); held {
				return int64(length * 1e9)
			}
			return 0
		})
	})
}

func slowTokenizer(s *sim, f *Fault) {
	f.begins(s, func(v *server) { v.slow = f.Size })
}

func lateAnswers(s *sim, f *Fault) {
	f.begins(s, func(v *server) { v.late = int64(f.Size * 1e9) })
}

func slowReaders(s *sim, f *Fault) {
	rng := f.rng(s)
	s.reads = append(s.reads, func(*Request) int64 {
		slow, length := rng.Float64() < f.Share, f.Size*(1+rng.Float64())
		if !slow || s.Agenda.Now < f.since(s) {
			return 0
		}
		return int64(length * 1e9)
	})
}

func slowPair(s *sim, f *Fault) {
	s.slowWay = append(s.slowWay, func(from, to *server) int64 {
		if s.Agenda.Now < f.since(s) || from.index != f.Server || to.index != f.Other {
			return 0
		}
		return int64(f.Size * 1e9)
	})
}

func clockStep(s *sim, f *Fault) {
	f.each(s, func(v *server) {
		c := &s.run.Hosts[s.run.Servers[v.index].Host].Clock
		c.Step, c.Stepped = int64(f.Size*1e9), f.since(s)
	})
}
