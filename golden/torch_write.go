package golden

import (
	"io"
	"strconv"
)

// kinetoEpoch is what libkineto rounds the time of its first use down to, to get
// the base of all times: a quarter of a year, in ns.
const kinetoEpoch = 7_889_238_000_000_000

// write writes the trace of a scheduler and returns what is in it. The order of
// events is that of libkineto: what PyTorch recorded, what CUPTI did, and what was
// derived from both.
func (c *capture) write(w io.Writer) (*TorchFile, error) {
	passes := c.passes()
	from, to := c.window(passes)
	t := &torchWriter{
		w: w, clock: c.clock(), pid: c.process().pid, gpu: c.device(), index: 1,
		buf: make([]byte, 0, torchBuffer+1<<14),
	}
	t.base = t.clock.at(from) / kinetoEpoch * kinetoEpoch
	c.header(t)
	for i := range passes {
		c.operators(t, &passes[i])
	}
	if c.config().Stacks > 0 && len(passes) > 0 {
		c.stacks(t, passes, from, to)
	}
	for i := range passes {
		c.calls(t, &passes[i])
		c.works(t, &passes[i])
	}
	for i := range passes {
		c.gpuAnnotations(t, &passes[i])
	}
	c.trailer(t, from, to)
	t.flush(true)
	return c.truth(t, passes), t.err
}

// window returns the true times between which c was recording.
func (c *capture) window(passes []pass) (from, to int64) {
	if len(passes) == 0 {
		return c.group.profile.from, c.group.profile.to
	}
	first, last := &passes[0], &passes[len(passes)-1]
	return min(first.rank.formed, first.rank.scheduled) - 180*us, last.settled + 100*us
}

// operators writes the annotations of the scheduler and the operators of a step.
func (c *capture) operators(t *torchWriter, p *pass) {
	if p.picked != 0 {
		t.annotation("scheduler.get_next_batch_to_run", p.external, p.picking, p.picked)
	}
	t.annotation("scheduler.run_batch", p.external+1, p.rank.scheduled+100, p.rank.computed)
	if p.end != 0 {
		t.annotation(p.stepName(), p.external+2, p.begin, p.end)
	}
	texts := c.texts(p)
	for i := range p.calls {
		k := &p.calls[i]
		row := &opTable[k.op]
		if row.outer == "" {
			continue
		}
		text := &texts[k.op]
		t.operator(row.outer, k.external, text.shapes, k.at(partOuter), k.at(partOuterEnd))
		switch {
		case k.seq != 0:
			t.openOperator(row.inner, k.external+1, k.at(partInner), k.at(partInnerEnd))
			c.collective(t, text, k.seq)
			t.text(", ")
			t.eventIndex()
			t.annotation(row.annotation, k.external+2, k.at(partInner)+1, k.at(partInnerEnd)-1)
		case row.inner != "":
			t.operator(row.inner, k.external+1, text.shapes, k.at(partInner), k.at(partInnerEnd))
		}
	}
	if p.settled != 0 {
		t.annotation("scheduler.process_batch_result", p.external+3, p.rank.computed+100, p.settled)
	}
}

// collective writes the arguments of a collective, without a comma at the end.
func (c *capture) collective(t *torchWriter, text *opText, seq uint64) {
	t.text(text.collective)
	if c.config().WithSeq {
		t.text(", \"Seq\": ")
		t.buf = strconv.AppendUint(t.buf, seq, 10)
		t.text(", \"Comms Id\": ")
		t.buf = strconv.AppendUint(t.buf, c.group.commsID(seq), 10)
	}
}

// launcher returns the id of the operator that makes the call of CUDA in k.
func (k *call) launcher() int {
	if k.external != 0 && opTable[k.op].inner != "" {
		return k.external + 1
	}
	return k.external
}

// calls writes the calls of CUDA in a step.
func (c *capture) calls(t *torchWriter, p *pass) {
	for i := range p.calls {
		k := &p.calls[i]
		if k.seq != 0 { // the stream of NCCL waits for the kernels before
			t.runtime(apiEventRecord, k.launcher(), k.correlation-2, k.at(partRecord), k.at(partWait)-1)
			t.runtime(apiStreamWait, k.launcher(), k.correlation-1, k.at(partWait), k.at(partLaunch)-1)
		}
		t.runtime(opTable[k.op].api, k.launcher(), k.correlation, k.at(partLaunch), k.at(partLaunched))
	}
}

// works writes what a step runs on the GPU.
func (c *capture) works(t *torchWriter, p *pass) {
	texts := c.texts(p)
	for i := range p.work {
		k := &p.work[i]
		from := &p.calls[k.call]
		row := &opTable[k.op]
		t.slice(row.gpu, row.kernel, t.gpu, row.stream, k.start, k.end)
		t.externalID(from.launcher())
		if row.gpu == catMemcpy {
			t.copied(row.stream, from.correlation, p.st.tokens*tokenBytes, k.end-k.start)
		} else {
			t.kernel(row.stream, from.correlation, row.details)
			if c.config().WithSeq && k.node != 0 {
				t.text(",      \"graph id\": 21,      \"graph node id\": ")
				t.integer(int64(k.node))
			}
			if from.seq != 0 {
				t.text(", ")
				c.collective(t, &texts[k.op], from.seq)
			}
		}
		t.end()
		t.flow(false, from.correlation, t.gpu, row.stream, k.start)
	}
}

// gpuAnnotations writes what libkineto derives from the annotations on the CPU:
// per stream, the time from the first to the last kernel launched inside, and a
// nanosecond more on each side.
func (c *capture) gpuAnnotations(t *torchWriter, p *pass) {
	for _, stream := range []int{computeStream, commStream, copyStream} {
		start, end := int64(0), int64(0)
		for i := range p.work {
			k := &p.work[i]
			if opTable[k.op].stream != stream {
				continue
			}
			if start == 0 {
				start = k.start
			}
			end = k.end
			if row, from := &opTable[k.op], &p.calls[k.call]; from.seq != 0 {
				t.gpuAnnotation(row.annotation, from.external+2, stream, k.start-1, k.end+1)
			}
		}
		if start != 0 {
			t.gpuAnnotation(p.stepName(), p.external+2, stream, start-1, end+1)
		}
	}
}
