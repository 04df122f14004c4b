package torch

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Fault is a kind of failure.
type Fault uint8

const (
	Missing Fault = iota // a rank stops, and enters nothing more
	OtherOp              // it enters another operation
	OtherSize
	OtherType
	OtherOrder // it enters two collectives the other way around
	Faults     // number of faults
)

// String returns the word in the report on hangs.
func (f Fault) String() string {
	return [...]string{"not entered", "another operation", "another size", "another type", "another order"}[f]
}

// A HangConfig configures the simulation.
type HangConfig struct {
	Seed   uint64
	TP, DP int // DP groups of TP ranks each
	Steps  int
	Fault  Fault
	Wrong  int // number of faulty ranks in one group, fewer than half of TP
	// Ring is the number of entries that a recorder keeps, and Active means that it only keeps those that have not ended.
	Ring   int
	Active bool
	Silent int // number of ranks without the fault whose dumps are lost
}

// A HangTruth is what went wrong.
type HangTruth struct {
	Fault  Fault
	Ranks  []int // the faulty ranks
	Group  string
	Of     []int // the ranks of the group
	Seq    int
	Silent []int // ranks without a dump
}

// An op is a collective of a program.
type op struct {
	group        int // index in job.groups
	name         string
	in, out      []int64
	typ          string
	line         int
	seq, created int64
	record       int64
	done         bool
}

// same reports whether two ranks' operations are one collective.
func (o *op) same(p *op) bool {
	return o.name == p.name && o.typ == p.typ && slices.Equal(o.in, p.in) && slices.Equal(o.out, p.out)
}

// A group is a process group. Groups of different ranks have different names.
type group struct {
	desc  string
	ranks []int
}

// A job is the simulation. A rank enters the collectives of its program, up to some number ahead of the first that has not
// ended. A collective ends when all ranks of its group are in it with the same operation. So one mistake stops its group,
// and then all ranks that share a group with one of those, as in reality. The truth is the mistake.
type job struct {
	HangConfig
	r       *rand.Rand
	groups  []group
	mine    [][]int // groups of each rank
	program [][]op  // of each rank
	entered []int   // by the rank, in its program
	first   []int   // the first that has not ended
	at      []map[call]int
	stops   []int // where a rank stops; -1 is nowhere
	truth   HangTruth
}

// A call names a collective of a rank's program.
type call struct {
	group int
	seq   int64
}

// start is when the first collective is entered, Unix ns.
const start = 1787000000_000000000

// newJob makes the groups and the programs.
func newJob(c HangConfig) *job {
	j := &job{HangConfig: c, r: rand.New(rand.NewPCG(c.Seed, 37))}
	world := c.TP * c.DP
	all := make([]int, world)
	for i := range all {
		all[i] = i
	}
	j.groups = append(j.groups, group{"default_pg", all})
	for d := range c.DP {
		j.groups = append(j.groups, group{"tp", all[d*c.TP : (d+1)*c.TP]})
	}
	for t := range c.TP {
		var ranks []int
		for d := range c.DP {
			ranks = append(ranks, d*c.TP+t)
		}
		j.groups = append(j.groups, group{"dp", ranks})
	}
	for rank := range world {
		j.mine = append(j.mine, []int{0, 1 + rank/c.TP, 1 + c.DP + rank%c.TP})
	}
	steps := j.steps()
	for rank := range world {
		j.program = append(j.program, j.programOf(rank, steps))
		j.stops = append(j.stops, -1)
	}
	j.entered, j.first = make([]int, world), make([]int, world)
	return j
}

// A step is a collective of all groups of a kind.
type step struct {
	kind int // 0 all, 1 TP, 2 DP
	name string
	size int64
	typ  string
}

func (j *job) steps() (list []step) {
	names := []string{"all_reduce", "_all_gather_base", "_reduce_scatter_base", "broadcast"}
	for range j.Steps {
		kind := []int{1, 1, 1, 1, 2, 2, 0}[j.r.IntN(7)]
		list = append(list, step{kind, names[j.r.IntN(len(names))], int64(128 * (1 + j.r.IntN(64))), []string{"BFloat16", "Float"}[j.r.IntN(2)]})
	}
	return list
}

func (j *job) programOf(rank int, steps []step) (list []op) {
	for i, s := range steps {
		g := j.mine[rank][s.kind]
		n := int64(len(j.groups[g].ranks))
		o := op{group: g, name: s.name, typ: s.typ, in: []int64{s.size, 64}, out: []int64{s.size, 64}, line: 100 + i}
		switch s.name {
		case "_all_gather_base":
			o.out = []int64{s.size * n, 64}
		case "_reduce_scatter_base":
			o.in = []int64{s.size * n, 64}
		}
		list = append(list, o)
	}
	return list
}

// plant plants the mistake: in a collective of a TP group in the second half of the program.
func (j *job) plant() {
	g := 1 + j.r.IntN(j.DP)
	of := j.groups[g].ranks
	at := -1
	for tries := 0; at < 0; tries++ {
		i := len(j.program[0])/2 + j.r.IntN(len(j.program[0])/2-8)
		p := j.program[of[0]]
		next := i + 1
		if p[i].group == g && (j.Fault != OtherOrder || p[next].group == g && !p[i].same(&p[next]) && p[i].name != p[next].name) {
			at = i
		} else if tries > 1000 { // there is no such pair: make one
			for _, r := range of {
				q := j.program[r]
				q[i].group, q[next].group = g, g
				q[i].name, q[i].in, q[i].out = "all_reduce", []int64{640, 64}, []int64{640, 64}
				q[next].name, q[next].in, q[next].out = "broadcast", []int64{640, 64}, []int64{640, 64}
			}
			for r := range j.program { // of the others, so that all have the same number
				if !slices.Contains(of, r) {
					j.program[r][i].group, j.program[r][next].group = j.mine[r][1], j.mine[r][1]
				}
			}
			at = i
		}
	}
	j.truth = HangTruth{Fault: j.Fault, Group: j.groups[g].desc, Of: of}
	for _, k := range j.r.Perm(len(of))[:j.Wrong] {
		r := of[k]
		j.truth.Ranks = append(j.truth.Ranks, r)
		p := j.program[r]
		switch j.Fault {
		case Missing:
			j.stops[r] = at
		case OtherOp:
			p[at].name = "gather"
		case OtherSize:
			p[at].in, p[at].out = []int64{p[at].in[0] + 1, 64}, []int64{p[at].out[0] + 1, 64}
		case OtherType:
			p[at].typ = "Half"
		case OtherOrder:
			p[at], p[at+1] = p[at+1], p[at]
		}
	}
	slices.Sort(j.truth.Ranks)
	seq := 0
	for i := range at + 1 {
		if j.program[of[0]][i].group == g {
			seq++
		}
	}
	j.truth.Seq = seq
}

// run enters collectives until nothing changes.
func (j *job) run() {
	const ahead = 6
	for rank := range j.program {
		count, at := map[int]int64{}, map[call]int{}
		for i := range j.program[rank] {
			o := &j.program[rank][i]
			count[o.group]++
			o.seq, o.record = count[o.group], int64(i)
			at[call{o.group, o.seq}] = i
			o.created = start + int64(i)*1_000_000 + int64(rank)*1000 + j.r.Int64N(900)
		}
		j.at = append(j.at, at)
	}
	for moved := true; moved; {
		moved = false
		for rank := range j.program {
			p := j.program[rank]
			first := j.first[rank]
			for j.entered[rank] < min(len(p), first+ahead) && j.entered[rank] != j.stops[rank] {
				j.entered[rank]++
				moved = true
			}
			if first < j.entered[rank] && j.ends(rank, first) {
				moved = true
				for _, r := range j.groups[p[first].group].ranks { // the first one for all of them
					j.program[r][j.first[r]].done = true
					j.first[r]++
				}
			}
		}
	}
}

// ends reports whether all ranks of a group are in a collective, which is the first of each that has not ended.
func (j *job) ends(rank, i int) bool {
	o := &j.program[rank][i]
	for _, r := range j.groups[o.group].ranks {
		p := j.program[r]
		k, ok := j.at[r][call{o.group, o.seq}]
		if !ok || k >= j.entered[r] || j.first[r] != k || !p[k].same(o) {
			return false
		}
	}
	return true
}

// groupName returns a rank's name of a group.
func (j *job) groupName(g int) string {
	if g == 0 {
		return "0"
	}
	return fmt.Sprint(30 + g)
}
