package golden

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// What a capture is of.
func (c *capture) config() *TorchConfig { return &c.group.profile.config }
func (c *capture) run() *Run            { return c.group.profile.run }
func (c *capture) instance() *instance  { return &c.run().instances[c.group.instance] }
func (c *capture) scheduler() int       { return c.group.scheduler(c.tp) }
func (c *capture) process() *process {
	return &c.run().processes[c.instance().schedulers[c.scheduler()]]
}
func (c *capture) clock() *clock { return &c.run().hosts[c.process().host].clock }

// worldRank is the rank in torch.distributed, of which every DP rank has its own.
func (c *capture) worldRank() int { return c.group.pp*c.group.size.TP + c.tp }

// device is the ordinal of the GPU, counted on each host.
func (c *capture) device() int {
	_, slot := c.run().seat(c.instance(), c.scheduler())
	return slot
}

// name returns the name that SGLang gives the file of a capture. A prefill and a
// decode instance are told apart by a prefix.
func (c *capture) name() string {
	in := c.instance()
	name := ""
	if in.role != roleUnified {
		name = string(in.role) + "-"
	}
	name += fmt.Sprintf("%s-TP-%d", c.profileID(), c.tp)
	if in.size.DP > 1 {
		name += fmt.Sprintf("-DP-%d", c.group.dp)
	}
	if in.size.PP > 1 {
		name += fmt.Sprintf("-PP-%d", c.group.pp)
	}
	name += ".trace.json"
	if c.config().Gzip {
		name += ".gz"
	}
	return name
}

// profileID returns the id that an instance gave its recording, which is the time
// of the request for it by its clock: str(time.time()) in Python.
func (c *capture) profileID() string {
	t := c.run().hosts[c.instance().host].clock.at(c.group.profile.from - 250*ms)
	return fmt.Sprintf("%d.%07d", t/1e9, t%1e9/100)
}

// title returns the name of the process, which SGLang sets.
func (c *capture) title() string {
	name := "sglang::scheduler"
	if c.group.size.DP > 1 {
		name += fmt.Sprintf("_DP%d", c.group.dp)
	}
	if c.group.size.PP > 1 {
		name += fmt.Sprintf("_PP%d", c.group.pp)
	}
	return name + fmt.Sprintf("_TP%d", c.tp)
}

// stepName returns the annotation of a step (SGLang's utils/profile_utils.py).
func (p *pass) stepName() string {
	if p.st.mode == modeDecode {
		return fmt.Sprintf("step[DECODE bs=%d]", p.st.requests)
	}
	return fmt.Sprintf("step[EXTEND bs=%d toks=%d]", p.st.requests, p.st.tokens)
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

// ranksShown is how many ranks of a group PyTorch prints.
const ranksShown = 30

// groupName is the name of the TP group's process group. SGLang makes two, of NCCL
// and of Gloo, for the world and then for every TP group.
func (g *torchGroup) groupName() int { return 3 + 2*g.pp }

// commsID returns the id of a collective. As PyTorch does, it hashes what all
// ranks of the group know, so that other replicas, which count their groups and
// collectives in the same way, have the same ids.
func (g *torchGroup) commsID(seq uint64) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%d/false/%d/1/%d", g.groupName(), seq, g.pp*g.size.TP, g.size.TP)
	return h.Sum64() | 1<<62
}

// opText is what depends on the size of a step in the arguments of an operator.
type opText struct {
	shapes     string
	collective string
}

// texts returns the texts of a step.
func (c *capture) texts(p *pass) (texts [len(opTable)]opText) {
	tokens := strconv.Itoa(p.st.tokens)
	for i := range opTable {
		if c.config().Shapes {
			texts[i].shapes = strings.ReplaceAll(opTable[i].shapes, "@", tokens)
		}
	}
	hidden, logits := p.st.tokens*hiddenSize, p.st.requests*vocabulary
	texts[opAllReduce].collective = c.group.collective("allreduce", "BFloat16", hidden, hidden)
	texts[opAllGather].collective = c.group.collective("_allgather_base", "Float", logits/c.group.size.TP, logits)
	return texts
}

// collective returns the arguments of a collective, but for its Seq.
func (g *torchGroup) collective(name, dtype string, in, out int) string {
	return fmt.Sprintf(`"Collective name": "%s", "In msg nelems": %d, "Out msg nelems": %d, "Group size": %d, "dtype": "%s", `+
		`"In split size": "[]", "Out split size": "[]", "Process Group Name": "%d", "Process Group Description": "undefined", "Process Group Ranks": "%s"`,
		name, in, out, g.size.TP, dtype, g.groupName(), rankList(g.pp*g.size.TP, g.size.TP))
}
