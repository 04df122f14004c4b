package dataset

import "github.com/sgtrace/sgtrace/profile"

// collectiveCells are the columns of collectives. The correlation has told what it can: the
// step, and what the call says of the kernel.
type collectiveCells struct {
	start, dur, seq, comms        *cell
	process, thread, onGPU, step  *cell
	name, op, group, ranks, dtype *cell
	in, out, size, splits         *cell
	held                          *cell
	ofKind                        []*cell // the last four lines
}

func newCollectiveCells(in *rows) *collectiveCells {
	c := &collectiveCells{start: in.column("start"), dur: in.column("dur"), seq: in.column("seq"), comms: in.column("comms_id")}
	kind := func(name string) *cell {
		x := in.column(name)
		c.ofKind = append(c.ofKind, x)
		return x
	}
	c.process, c.thread, c.onGPU, c.step = kind("process"), kind("thread"), kind("on_gpu"), kind("step")
	c.name, c.op, c.group, c.ranks, c.dtype = kind("name"), kind("op"), kind("group_name"), kind("group_ranks"), kind("dtype")
	c.in, c.out, c.size, c.splits = kind("elements_in"), kind("elements_out"), kind("group_size"), kind("splits")
	c.held = kind("held")
	return c
}

// kind returns what the rows at hand have in common.
func (c *collectiveCells) kind() profile.Collective {
	return profile.Collective{Event: profile.NoEvent, Row: int32(c.thread.int()), Name: c.name.sym(), OnGPU: c.onGPU.int() != 0, Op: c.op.sym(), Group: c.group.sym(),
		Ranks: c.ranks.sym(), Dtype: c.dtype.sym(), In: c.in.int(), Out: c.out.int(), GroupSize: int32(c.size.int()), Splits: c.splits.sym(),
		Step: profile.StepKind(stepKinds.number(c.step.text())), Held: c.held.int() != 0}
}

// collectives reads collectives: as many at a time as are of one kind.
func (r *restoring) collectives() error {
	in := r.openRows("collectives-0", r.opt.Syms)
	c := newCollectiveCells(in)
	if len(r.profiles) == 1 {
		r.profiles[0].Collectives.Grow(int(in.left))
	}
	for in.run(c.ofKind) {
		p := r.profileOf(c.process)
		if p == nil {
			continue
		}
		x := c.kind()
		if x.Row < 0 || int(x.Row) >= len(p.Rows) {
			in.err = errDamaged
			break
		}
		p.Collectives.AddRun(p.Collectives.Kind(&x), c.start.ints(in.width), c.dur.ints(in.width), c.seq.ints(in.width), c.comms.ints(in.width))
	}
	return in.close()
}
