package torch

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// The configuration of a capture, its run, its instance, and its scheduler.
func (c *Capture) config() *Config               { return &c.Group.profile.config }
func (c *Capture) run() *simulator.Run           { return c.Group.profile.Run }
func (c *Capture) instance() *simulator.Instance { return &c.run().Instances[c.Group.Instance] }
func (c *Capture) scheduler() int                { return c.Group.scheduler(c.TP) }
func (c *Capture) Process() *simulator.Process {
	return &c.run().Processes[c.instance().Schedulers[c.scheduler()]]
}
func (c *Capture) clock() *simulator.Clock { return &c.run().Hosts[c.Process().Host].Clock }

// worldRank returns the rank in torch.distributed; every DP rank has a world of its own.
func (c *Capture) worldRank() int { return c.Group.PP*c.Group.Size.TP + c.TP }

// Device returns the ordinal of the GPU, counted on each host.
func (c *Capture) Device() int {
	_, slot := c.run().Slot(c.instance(), c.scheduler())
	return slot
}

// name returns SGLang's name for the file of a capture. A prefix distinguishes prefill and decode instances.
func (c *Capture) name() string {
	in := c.instance()
	name := ""
	if in.Role != simulator.RoleUnified {
		name = string(in.Role) + "-"
	}
	name += fmt.Sprintf("%s-TP-%d", c.profileID(), c.TP)
	if in.Size.DP > 1 {
		name += fmt.Sprintf("-DP-%d", c.Group.DP)
	}
	if in.Size.PP > 1 {
		name += fmt.Sprintf("-PP-%d", c.Group.PP)
	}
	name += ".trace.json"
	if c.config().Gzip {
		name += ".gz"
	}
	return name
}

// profileID returns the id of an instance's recording, which is the time of the request for it on its clock:
// str(time.time()) in Python.
func (c *Capture) profileID() string {
	t := c.run().Hosts[c.instance().Host].Clock.At(c.Group.profile.from - 250*ms)
	return fmt.Sprintf("%d.%07d", t/1e9, t%1e9/100)
}

// Title returns the name of the process, which SGLang sets.
func (c *Capture) Title() string {
	name := "sglang::scheduler"
	if c.Group.Size.DP > 1 {
		name += fmt.Sprintf("_DP%d", c.Group.DP)
	}
	if c.Group.Size.PP > 1 {
		name += fmt.Sprintf("_PP%d", c.Group.PP)
	}
	return name + fmt.Sprintf("_TP%d", c.TP)
}

// StepName returns the annotation of a step (SGLang's utils/profile_utils.py).
func (p *Pass) StepName() string {
	if p.Step.Mode == simulator.ModeDecode {
		return fmt.Sprintf("step[DECODE bs=%d]", p.Step.Requests)
	}
	return fmt.Sprintf("step[EXTEND bs=%d toks=%d]", p.Step.Requests, p.Step.Tokens)
}

// rankList returns the world ranks from one on as PyTorch prints them in arguments.
func rankList(from, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == ranksShown {
			b.WriteString("...")
			break
		}
		b.WriteString(strconv.Itoa(from + i))
	}
	return "[" + b.String() + "]"
}

// ranksShown is the number of ranks of a group that PyTorch prints.
const ranksShown = 30

// groupName returns the name of the TP group's process group. SGLang makes two, of NCCL
// and of Gloo, for the world and then for every TP group.
func (g *Group) groupName() int { return 3 + 2*g.PP }

// commsID returns the id of a collective. Like PyTorch, it hashes only what all ranks of the group know, so that other
// replicas, which number their groups and collectives in the same way, have the same ids.
func (g *Group) commsID(seq uint64) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%d/false/%d/1/%d", g.groupName(), seq, g.PP*g.Size.TP, g.Size.TP)
	return h.Sum64() | 1<<62
}

// opText has the arguments of an operator that depend on the size of a step.
type opText struct {
	shapes     string
	inner      string // shapes of the operator within
	collective string
}

// texts returns the texts of a step.
func (c *Capture) texts(p *Pass) (texts [len(OpTable)]opText) {
	tokens := strconv.Itoa(p.Step.Tokens)
	for i := range OpTable {
		if c.config().Shapes {
			texts[i].shapes = strings.ReplaceAll(OpTable[i].shapes, "@", tokens)
			texts[i].inner = strings.ReplaceAll(cmp.Or(OpTable[i].innerShapes, OpTable[i].shapes), "@", tokens)
		}
	}
	hidden, logits := p.Step.Tokens*HiddenSize, p.Step.Requests*Vocabulary
	texts[opAllReduce].collective = c.Group.collective("allreduce", "BFloat16", hidden, hidden)
	texts[OpAllGather].collective = c.Group.collective("_allgather_base", "Float", logits/c.Group.Size.TP, logits)
	return texts
}

// collective returns the arguments of a collective, except for its Seq.
func (g *Group) collective(name, dtype string, in, out int) string {
	return fmt.Sprintf(`"Collective name": "%s", "In msg nelems": %d, "Out msg nelems": %d, "Group size": %d, "dtype": "%s", `+
		`"In split size": "[]", "Out split size": "[]", "Process Group Name": "%d", "Process Group Description": "undefined", "Process Group Ranks": "%s"`,
		name, in, out, g.Size.TP, dtype, g.groupName(), rankList(g.PP*g.Size.TP, g.Size.TP))
}
