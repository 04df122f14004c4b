package golden

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Pids are those of containers: all hosts have the same.
const (
	tokenizerPID  = 88
	controllerPID = 131
	schedulerPID  = 245 // of the first rank of a host
	schedulerStep = 97  // from one rank to the next
)

// deploy lays out hosts, instances and processes of c.
func (r *Run) deploy(rng *rand.Rand) {
	c := &r.config
	switch c.Mode {
	case Unified:
		r.addInstance(roleUnified, r.addHosts(rng, roleUnified, clock{}, c.Unified), c.Unified)
		return
	case PDGateway:
		at := r.addHosts(rng, roleRouter, clock{}, Parallel{1, 1, 1})
		r.addProcess(process{host: at, role: roleRouter, label: "smg", rank: noRank})
		skewed := clock{skew: int64(c.PrefillSkew), drift: c.PrefillDrift}
		r.addInstance(rolePrefill, r.addHosts(rng, rolePrefill, skewed, c.Prefill), c.Prefill)
	case PDDirect:
		r.addInstance(rolePrefill, r.addHosts(rng, rolePrefill, clock{}, c.Prefill), c.Prefill)
	}
	skewed := clock{skew: int64(c.DecodeSkew), drift: c.DecodeDrift}
	r.addInstance(roleDecode, r.addHosts(rng, roleDecode, skewed, c.Decode), c.Decode)
}

// addHosts adds the hosts of an instance, the first one with the clock given, and
// returns the index of the first.
func (r *Run) addHosts(rng *rand.Rand, does role, c clock, size Parallel) int {
	first := len(r.hosts)
	ranks := size.TP * size.PP * size.DP
	for i := range (ranks-1)/r.config.schedulersPerHost(ranks) + 1 {
		r.hosts = append(r.hosts, host{
			name:    fmt.Sprintf("%s-%d", does, i),
			id:      hexDigits(rng, 32),
			address: fmt.Sprintf("10.0.0.%d", 10+len(r.hosts)),
			clock:   c,
		})
		c.skew += int64(r.config.HostSkew)
		c.drift += r.config.HostDrift
	}
	return first
}

// setClocks lets all clocks have their skew at a true time.
func (r *Run) setClocks(at int64) {
	for i := range r.hosts {
		r.hosts[i].clock.since = at
	}
}

func (r *Run) addProcess(p process) int {
	r.processes = append(r.processes, p)
	return len(r.processes) - 1
}

// addInstance adds an instance with its processes, labelled as SGLang does: the
// HTTP server's tokenizer has no blank behind the role.
func (r *Run) addInstance(does role, at int, size Parallel) {
	prefix := ""
	switch does {
	case rolePrefill:
		prefix = "Prefill"
	case roleDecode:
		prefix = "Decode"
	}
	label := func(name string) string { return strings.TrimLeft(prefix+" "+name, " ") }

	in := instance{role: does, host: at, size: size, controller: -1}
	in.tokenizer = r.addProcess(process{at, does, prefix + "Tokenizer", noRank, tokenizerPID})
	if size.DP > 1 {
		in.controller = r.addProcess(process{at, does, label("DP Controller"), noRank, controllerPID})
	}
	for dp := range size.DP {
		for pp := range size.PP {
			for tp := range size.TP {
				rank := rankID{tp, pp, dp}
				if size.DP == 1 {
					rank.dp = -1
				}
				host, slot := r.seat(&in, len(in.schedulers))
				pid := schedulerPID + schedulerStep*slot
				in.schedulers = append(in.schedulers, r.addProcess(process{host, does, label("Scheduler"), rank, pid}))
			}
		}
	}
	r.instances = append(r.instances, in)
}

// seat returns on which host of an instance a scheduler runs, counted as in
// instance.schedulers, and which of the schedulers of that host it is.
func (r *Run) seat(in *instance, scheduler int) (host, slot int) {
	n := r.config.schedulersPerHost(in.ranks())
	return in.host + scheduler/n, scheduler % n
}

// serving returns the instance that decodes. It is the last one.
func (r *Run) serving() *instance { return &r.instances[len(r.instances)-1] }

// straggler returns the process of the planted straggler, or -1.
func (r *Run) straggler() int {
	s := r.config.Straggler
	if s.Factor <= 1 {
		return -1
	}
	in := r.serving()
	return in.schedulers[s.DP*in.replica()+s.PP*in.size.TP+s.TP]
}

// balanced reports whether the balancer turns to one DP rank in this run.
func (r *Run) balanced() bool {
	return r.config.serving().DP > 1 && r.config.Incident.DPShare > 0
}

// String returns the rank as in reports: TP0-PP1-DP2, without unknown parts.
func (k rankID) String() string {
	var b strings.Builder
	for _, part := range []struct {
		name string
		n    int
	}{{"TP", k.tp}, {"PP", k.pp}, {"DP", k.dp}} {
		if part.n < 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('-')
		}
		fmt.Fprintf(&b, "%s%d", part.name, part.n)
	}
	return b.String()
}

// hexDigits returns n random lower case hex digits.
func hexDigits(rng *rand.Rand, n int) string {
	const digits = "0123456789abcdef"
	b := make([]byte, n)
	for i := range b {
		b[i] = digits[rng.IntN(len(digits))]
	}
	return string(b)
}
