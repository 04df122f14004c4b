package torch

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// kinetoEpoch is the unit to which libkineto rounds down the time of its first use, to get the base of all times: a quarter
// of a year, in ns.
const kinetoEpoch = 7_889_238_000_000_000

// write writes the trace of a scheduler and returns its content. The order of events is libkineto's: PyTorch's events,
// CUPTI's, and those derived from both.
func (c *Capture) write(w io.Writer) (*FileTruth, error) {
	passes := c.Passes()
	from, to := c.Window(passes)
	t := &writer{
		w: w, clock: c.clock(), pid: c.Process().PID, gpu: c.Device(), index: 1,
		buf: make([]byte, 0, bufferSize+1<<14),
	}
	t.warps = c.Warps(passes)
	t.base = t.clock.At(from) / kinetoEpoch * kinetoEpoch
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
	c.stalls(t)
	for i := range passes {
		c.gpuAnnotations(t, &passes[i])
	}
	c.trailer(t, from, to)
	t.flush(true)
	return c.truth(t, passes), t.err
}

// Window returns the true times between which c was recording.
func (c *Capture) Window(passes []Pass) (from, to int64) {
	if len(passes) == 0 {
		return c.Group.profile.from, c.Group.profile.to
	}
	first, last := &passes[0], &passes[len(passes)-1]
	return min(first.Rank.Formed, first.Rank.Scheduled) - 180*us, last.Settled + 100*us
}

// operators writes the annotations of the scheduler and the operators of a step.
func (c *Capture) operators(t *writer, p *Pass) {
	if p.Picked != 0 {
		t.annotation("scheduler.get_next_batch_to_run", p.external, p.Picking, p.Picked)
	}
	t.annotation("scheduler.run_batch", p.external+1, p.Rank.Scheduled+100, p.Rank.Computed)
	if p.End != 0 {
		t.annotation(p.StepName(), p.external+2, p.Begin, p.End)
	}
	texts := c.texts(p)
	for i := range p.Calls {
		k := &p.Calls[i]
		row := &OpTable[k.Op]
		if row.outer == "" {
			continue
		}
		text := &texts[k.Op]
		t.operator(row.outer, k.external, text.shapes, k.At(partOuter), k.At(partOuterEnd))
		switch {
		case k.Seq != 0:
			t.openOperator(row.inner, k.external+1, k.At(partInner), k.At(partInnerEnd))
			c.collective(t, text, k.Seq)
			t.text(", ")
			t.eventIndex()
			t.annotation(row.annotation, k.external+2, k.At(partInner)+1, k.At(partInnerEnd)-1)
		case row.inner != "":
			t.operator(row.inner, k.external+1, text.inner, k.At(partInner), k.At(partInnerEnd))
		}
	}
	if p.Settled != 0 {
		t.annotation("scheduler.process_batch_result", p.external+3, p.Rank.Computed+100, p.Settled)
	}
}

// collective writes the arguments of a collective, without a comma at the end.
func (c *Capture) collective(t *writer, text *opText, seq uint64) {
	t.text(text.collective)
	if c.config().WithSeq {
		t.text(`, "Seq": `)
		t.buf = strconv.AppendUint(t.buf, seq, 10)
		t.text(`, "Comms Id": `)
		t.buf = strconv.AppendUint(t.buf, c.Group.commsID(seq), 10)
	}
}

// launcher returns the id of the operator that makes the call of CUDA in k.
func (k *Call) launcher() int {
	if k.external != 0 && OpTable[k.Op].inner != "" {
		return k.external + 1
	}
	return k.external
}

// calls writes the calls of CUDA in a step.
func (c *Capture) calls(t *writer, p *Pass) {
	for i := range p.Calls {
		k := &p.Calls[i]
		if k.Seq != 0 { // NCCL's stream waits for the kernels before
			t.runtime(APIEventRecord, k.launcher(), k.Correlation-2, k.At(PartRecord), k.At(PartWait)-1)
			t.runtime(APIStreamWait, k.launcher(), k.Correlation-1, k.At(PartWait), k.At(PartLaunch)-1)
		}
		t.runtime(OpTable[k.Op].API, k.launcher(), k.Correlation, k.At(PartLaunch), k.At(PartLaunched))
	}
}

// works writes the GPU work of a step.
func (c *Capture) works(t *writer, p *Pass) {
	texts := c.texts(p)
	for i := range p.Work {
		k := &p.Work[i]
		from := &p.Calls[k.Call]
		row := &OpTable[k.Op]
		t.slice(row.GPU, row.Kernel, t.gpu, row.Stream, k.Start, k.End)
		t.externalID(from.launcher())
		if row.GPU == CatMemcpy {
			t.copied(row.Stream, from.Correlation, p.Step.Tokens*TokenBytes, k.End-k.Start)
		} else {
			t.kernel(row.Stream, from.Correlation, row.Details)
			if c.config().WithSeq && k.Node != 0 {
				t.text(`,      "graph id": 21,      "graph node id": `).integer(int64(k.Node))
			}
			if from.Seq != 0 {
				t.text(", ")
				c.collective(t, &texts[k.Op], from.Seq)
			}
		}
		t.end()
		t.flow(false, from.Correlation, t.gpu, row.Stream, k.Start)
	}
}

// gpuAnnotations writes the annotations that libkineto derives from those on the CPU: per stream, the time from the first
// to the last kernel launched inside, plus a nanosecond on each side.
func (c *Capture) gpuAnnotations(t *writer, p *Pass) {
	for _, stream := range []int{ComputeStream, CommStream, CopyStream} {
		start, end := int64(0), int64(0)
		for i := range p.Work {
			k := &p.Work[i]
			if OpTable[k.Op].Stream != stream {
				continue
			}
			start = cmp.Or(start, k.Start)
			end = k.End
			if row, from := &OpTable[k.Op], &p.Calls[k.Call]; from.Seq != 0 {
				t.gpuAnnotation(row.annotation, from.external+2, stream, k.Start-1, k.End+1)
			}
		}
		if start != 0 {
			t.gpuAnnotation(p.StepName(), p.external+2, stream, start-1, end+1)
		}
	}
}

// WriteDir writes the traces of all schedulers of a run into the folder torch of a directory, with SGLang's file names, and
// returns their content.
func WriteDir(dir string, r *simulator.Run, c Config) (*Truth, error) {
	p, err := NewProfile(r, c)
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, "torch")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	truth := &Truth{
		FromNs: p.from, ToNs: p.to, EndJitterNs: int64(c.EndJitter / time.Nanosecond),
		Files: make([]FileTruth, len(p.Captures)),
	}
	for _, g := range p.groups {
		truth.Groups = append(truth.Groups, g.truth())
	}
	errs := make([]error, len(p.Captures))
	var all sync.WaitGroup
	running := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, capture := range p.Captures {
		all.Go(func() {
			running <- struct{}{}
			defer func() { <-running }()
			errs[i] = simulator.WriteFile(filepath.Join(dir, capture.name()), func(w io.Writer) error {
				f, err := capture.compress(w)
				if err == nil {
					truth.Files[i] = *f
				}
				return err
			})
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return truth, nil
}

// compress writes a trace, compressed if configured.
func (c *Capture) compress(w io.Writer) (*FileTruth, error) {
	if !c.config().Gzip {
		return c.write(w)
	}
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	f, err := c.write(z)
	if err != nil {
		return nil, err
	}
	return f, z.Close()
}
