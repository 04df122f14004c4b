package ranks

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// A GivenRank is the rank of a process in an Nsight Systems export, as given by the user.
type GivenRank struct {
	Host string // or a prefix of its name; "" is any
	PID  int64
	Rank trace.Rank
}

// ParseGivenRank parses "PID=RANK" or "HOST:PID=RANK", with a rank as in labels: 3, TP3, TP3-DP0.
func ParseGivenRank(text string) (GivenRank, error) {
	what, rank, _ := strings.Cut(text, "=")
	g := GivenRank{}
	pid := what
	if i := strings.LastIndexByte(what, ':'); i >= 0 {
		g.Host, pid = what[:i], what[i+1:]
	}
	var err error
	if g.PID, err = strconv.ParseInt(strings.TrimPrefix(pid, "pid"), 10, 32); err != nil || g.PID <= 0 {
		return g, fmt.Errorf("%q: want PID=RANK or HOST:PID=RANK, such as 4100=TP3", text)
	}
	host, parsed, err := naming.ParseLabel(rank)
	if err != nil || host != "" || parsed == trace.NoRank {
		return g, fmt.Errorf("%q: want a rank after =, such as 3, TP3 or TP3-DP0", text)
	}
	g.Rank = parsed
	return g, nil
}

// ErrNoProcess is returned if the user named a process that no export has.
var ErrNoProcess = errors.New("no export has this process")

// Sources of a rank other than a trace's own facts.
const (
	fromUser = "user"
	fromGPU  = "GPU"
	fromPID  = "pid"
)

// rankExports applies the user's ranks to processes of exports, and shares ranks between captures of the
// same process.
func rankExports(captures []*Capture, given []GivenRank) error {
	exports := processesOfExports(captures)
	for i := range given {
		if err := applyGiven(&given[i], exports); err != nil {
			return err
		}
	}
	shareRanks(exports)
	return nil
}

// processesOfExports returns the captures that are processes in exports.
func processesOfExports(captures []*Capture) []*Capture {
	return slices.DeleteFunc(slices.Clone(captures), func(c *Capture) bool { return !c.IsOfMachine() || c.File.Meta.PID == 0 })
}

// applyGiven applies a rank given by the user.
func applyGiven(g *GivenRank, exports []*Capture) error {
	var hosts, pids []string
	for _, c := range exports {
		if c.File.Meta.PID != g.PID {
			pids = append(pids, strconv.FormatInt(c.File.Meta.PID, 10))
			continue
		}
		if !strings.HasPrefix(c.known.Host, g.Host) {
			continue
		}
		c.known.Rank, c.known.From, c.known.NotRank = g.Rank, fromUser, false
		hosts = append(hosts, c.known.Host)
	}
	hosts = order.Distinct(hosts)
	switch {
	case len(hosts) == 0:
		return fmt.Errorf("%w: %d; there are %s", ErrNoProcess, g.PID, cmp.Or(strings.Join(order.Distinct(pids), ", "), "none"))
	case len(hosts) > 1:
		return fmt.Errorf("%w: %d exists on each of %s; say which one, such as %s:%[2]d=RANK", ErrNoProcess, g.PID, strings.Join(hosts, ", "), hosts[0])
	}
	return nil
}

// shareRanks shares ranks between all captures of a process: communicators are created once, and sessions
// that start later do not see that.
func shareRanks(exports []*Capture) {
	type process struct {
		host string
		pid  int64
	}
	by := map[process][]*Capture{}
	for _, c := range exports {
		if c.known.Host != "" {
			p := process{c.known.Host, c.File.Meta.PID}
			by[p] = append(by[p], c)
		}
	}
	for _, list := range by {
		for _, c := range list {
			for _, o := range list {
				if o != c && !c.overlaps(o) && !c.known.Rank.Contradicts(o.known.Rank) {
					c.known.Rank, c.known.From = c.known.Rank.Fill(o.known.Rank), cmp.Or(c.known.From, o.known.From)
				}
			}
		}
	}
}

// usesGPU reports whether a process of an export used a GPU.
func (c *Capture) usesGPU() bool { return c.File.Meta.OnGPU }

// countRanks numbers the communicating processes of a host if no rank is known: by their GPUs, or else by
// their pids, and reports it. With several hosts, it is unknown which comes first, so none is numbered.
func (m *Assignment) countRanks(captures []*Capture) {
	exports := processesOfExports(captures)
	hosts := map[string][]*Capture{}
	for _, c := range exports {
		if !c.usesGPU() {
			continue
		}
		host := cmp.Or(c.known.Host, "file "+c.File.Name)
		hosts[host] = append(hosts[host], c)
	}
	var uncounted [][]*Capture
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		all := hosts[host]
		communicates := slices.ContainsFunc(all, func(c *Capture) bool { return c.File.Collectives.Len() > 0 || c.File.Meta.Backend != "" })
		// If the ranks of some are known, the others are unlikely to be the first ranks.
		known := slices.ContainsFunc(all, func(c *Capture) bool { return c.known.Rank != trace.NoRank || m.synced[c.File.Source] != nil })
		if communicates && !known && len(pidsOf(all)) > 1 {
			uncounted = append(uncounted, all)
		}
	}
	for _, all := range uncounted {
		if len(uncounted) > 1 {
			pid := pidsOf(all)[0]
			m.diags.Add(trace.RankUnknown.Of(all[0].File.Name, fmt.Sprintf("--rank-of %s%d=TP0", hostPrefix(all[0]), pid)))
			continue
		}
		m.count(all)
	}
}

func hostPrefix(c *Capture) string {
	if c.known.Host == "" {
		return ""
	}
	return c.known.Host + ":"
}

// pidsOf returns the distinct processes of captures, sorted.
func pidsOf(captures []*Capture) []int64 {
	return order.Distinct(order.Each(captures, func(c *Capture) int64 { return c.File.Meta.PID }))
}

// count numbers the processes of a host.
func (m *Assignment) count(captures []*Capture) {
	gpus := map[int64]int32{} // by process
	taken := map[int32]int64{}
	byGPU := true
	for _, c := range captures {
		gpu, pid := c.File.Meta.GPU, c.File.Meta.PID
		if owner, ok := taken[gpu]; gpu < 0 || ok && owner != pid {
			byGPU = false
		}
		gpus[pid], taken[gpu] = gpu, pid
	}
	order := pidsOf(captures)
	from, counted := fromPID, trace.RankByPID
	if byGPU {
		from, counted = fromGPU, trace.RankByGPU
		slices.SortFunc(order, func(a, b int64) int { return cmp.Compare(gpus[a], gpus[b]) })
	}
	for _, c := range captures {
		c.known.Rank.Global, c.known.From = int32(slices.Index(order, c.File.Meta.PID)), from
	}
	m.diags.Add(counted.Of(captures[0].File.Name, len(order), order[0]))
}

// An exportClock relates the clock of an Nsight Systems export to that of a PyTorch trace of one of its
// processes, which recorded the same kernels. An export counts from the start of its session, which may be
// missing, and was Unix time only then: the host's clock may have been adjusted since. Or it is the trace
// whose times have an unknown origin.
type exportClock struct {
	Name  string
	Trace *Capture
	Shift Shift
	// Host is the export's host, and Clock that host's clock, if the export places the trace.
	Host  string
	Clock int
}

// noteExportClock records what a pair says about the clock of an export, unless another pair has more
// matches.
func (m *Assignment) noteExportClock(n, t *Capture, p *pair) {
	if p.duplicates == nil || isNone(&p.shift) && n.File.Meta.Origin == t.File.Meta.Origin && t.known.Host != "" {
		return
	}
	x := &exportClock{Name: filepath.Base(n.File.Name), Trace: t, Shift: p.shift}
	if t.File.Meta.Origin == profile.OriginUnknown && n.File.Meta.Origin == profile.OriginUnix {
		x.Host = cmp.Or(n.known.Host, x.Name)
		m.Placed = append(m.Placed, x)
		return
	}
	if have := m.synced[n.File.Source]; have == nil || have.Shift.Matches < p.shift.Matches {
		m.synced[n.File.Source] = x
	}
}

// ExportClock returns the relation of the clock of a capture's export; nil if there is none.
func (m *Assignment) ExportClock(c *Capture) *exportClock {
	return m.synced[c.File.Source]
}
