package simulator

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Pids are those in containers, and the same on all hosts.
const (
	tokenizerPID  = 88
	controllerPID = 131
	schedulerPID  = 245 // of the first rank of a host
	schedulerStep = 97  // from one rank to the next
)

// deploy lays out hosts, instances and processes of c.
func (r *Run) deploy(rng *rand.Rand) {
	c := &r.Config
	switch c.Mode {
	case Unified:
		r.addInstance(RoleUnified, r.addHosts(rng, RoleUnified, Clock{}, c.Unified), c.Unified)
		return
	case PDGateway:
		at := r.addHosts(rng, RoleRouter, Clock{}, Parallel{1, 1, 1})
		r.addProcess(Process{Host: at, Role: RoleRouter, Label: "smg", Rank: NoRank})
		skewed := Clock{skew: int64(c.PrefillSkew), drift: c.PrefillDrift}
		r.addInstance(RolePrefill, r.addHosts(rng, RolePrefill, skewed, c.Prefill), c.Prefill)
	case PDDirect:
		r.addInstance(RolePrefill, r.addHosts(rng, RolePrefill, Clock{}, c.Prefill), c.Prefill)
	}
	skewed := Clock{skew: int64(c.DecodeSkew), drift: c.DecodeDrift}
	r.addInstance(RoleDecode, r.addHosts(rng, RoleDecode, skewed, c.Decode), c.Decode)
}

// addHosts adds the hosts of an instance, the first one with the given clock, and returns the index of the first.
func (r *Run) addHosts(rng *rand.Rand, does Role, c Clock, size Parallel) int {
	first := len(r.Hosts)
	ranks := size.TP * size.PP * size.DP
	const firstAddress = 10
	for i := range (ranks-1)/r.Config.SchedulersPerHost(ranks) + 1 {
		address := firstAddress + len(r.Hosts)
		r.Hosts = append(r.Hosts, Host{
			Name:    fmt.Sprintf("%s-%d", does, i),
			ID:      HexDigits(rng, 32),
			Address: fmt.Sprintf("10.0.%d.%d", address>>8, address&0xff),
			Clock:   c,
		})
		c.skew += int64(r.Config.HostSkew)
		c.drift += r.Config.HostDrift
	}
	return first
}

// setClocks makes all clocks have their skew at a true time.
func (r *Run) setClocks(at int64) {
	for i := range r.Hosts {
		r.Hosts[i].Clock.since = at
	}
}

func (r *Run) addProcess(p Process) int {
	r.Processes = append(r.Processes, p)
	return len(r.Processes) - 1
}

// addInstance adds an instance with its processes, labeled as by SGLang: the HTTP server's tokenizer has no blank after the
// role.
func (r *Run) addInstance(does Role, at int, size Parallel) {
	prefix := ""
	switch does {
	case RolePrefill:
		prefix = "Prefill"
	case RoleDecode:
		prefix = "Decode"
	}
	label := func(name string) string { return strings.TrimLeft(prefix+" "+name, " ") }

	in := Instance{Role: does, Host: at, Size: size, controller: -1}
	in.Tokenizer = r.addProcess(Process{at, does, prefix + "Tokenizer", NoRank, tokenizerPID})
	if size.DP > 1 {
		in.controller = r.addProcess(Process{at, does, label("DP Controller"), NoRank, controllerPID})
	}
	for dp := range size.DP {
		for pp := range size.PP {
			for tp := range size.TP {
				rank := RankID{tp, pp, dp}
				if size.DP == 1 {
					rank.DP = -1
				}
				host, slot := r.Slot(&in, len(in.Schedulers))
				pid := schedulerPID + schedulerStep*slot
				in.Schedulers = append(in.Schedulers, r.addProcess(Process{host, does, label("Scheduler"), rank, pid}))
			}
		}
	}
	r.Instances = append(r.Instances, in)
}

// Slot returns the host of an instance on which a scheduler runs, counted as in Instance.Schedulers, and its place among
// the schedulers of that host.
func (r *Run) Slot(in *Instance, scheduler int) (host, slot int) {
	n := r.Config.SchedulersPerHost(in.Ranks())
	return in.Host + scheduler/n, scheduler % n
}

// Serving returns the instance that decodes. It is the last one.
func (r *Run) Serving() *Instance { return &r.Instances[len(r.Instances)-1] }

// Straggler returns the process of the planted straggler, or -1.
func (r *Run) Straggler() int {
	s := r.Config.Straggler
	if !s.planted() {
		return -1
	}
	in := r.Serving()
	return in.Schedulers[s.DP*in.replica()+s.PP*in.Size.TP+s.TP]
}

// balanced reports whether the balancer prefers one DP rank in this run.
func (r *Run) balanced() bool {
	return r.Config.serving().DP > 1 && r.Config.Incident.DPShare > 0
}

// String returns the rank as in reports: TP0-PP1-DP2, without unknown parts.
func (k RankID) String() string {
	var b strings.Builder
	for _, part := range []struct {
		name string
		n    int
	}{{"TP", k.TP}, {"PP", k.PP}, {"DP", k.DP}} {
		if part.n < 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('-')
		}
		b.WriteString(part.name)
		b.WriteString(strconv.Itoa(part.n))
	}
	return b.String()
}
