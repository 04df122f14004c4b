package torch

import "fmt"

// stacks writes the Python frames of all steps: the loop of the scheduler around them, and in a step its phases, layers,
// and operators.
func (c *Capture) stacks(t *writer, passes []Pass, from, to int64) {
	process := t.python("sglang/srt/managers/scheduler.py(3105): run_scheduler_process", 0, from, to)
	loop := t.python("sglang/srt/managers/scheduler.py(1130): event_loop_normal", process, from+us, to-us)
	for i := range passes {
		p := &passes[i]
		if p.Picked != 0 {
			t.python("sglang/srt/managers/scheduler.py(1790): get_next_batch_to_run", loop, p.Picking-50, p.Picked+50)
		}
		batch := t.python("sglang/srt/managers/scheduler.py(2262): run_batch", loop, p.Rank.Scheduled+50, p.Rank.Computed+50)
		if p.End != 0 {
			s := stack{t, p, c.config().Stacks}
			s.phases(t.python("sglang/srt/managers/tp_worker.py(335): forward_batch_generation", batch, p.Begin-1, p.End+1))
		}
		if p.Settled != 0 {
			t.python("sglang/srt/managers/scheduler.py(2376): process_batch_result", loop, p.Rank.Computed+60, p.Settled+50)
		}
	}
}

// stack writes the frames inside one step.
type stack struct {
	*writer
	pass *Pass
	n    int // frames of an operator
}

// phases divides the calls of a step into inputs, the model, and sampling.
func (s *stack) phases(parent int) {
	names := [...]string{
		"sglang/srt/model_executor/forward_batch_info.py(268): init_new",
		"sglang/srt/model_executor/model_runner.py(1942): forward",
		"sglang/srt/model_executor/model_runner.py(2016): sample",
	}
	for i := 0; i < len(s.pass.Calls); {
		phase := phaseOf(&s.pass.Calls[i])
		n := 1
		for i+n < len(s.pass.Calls) && phaseOf(&s.pass.Calls[i+n]) == phase {
			n++
		}
		calls := s.pass.Calls[i:][:n]
		frame := s.python(names[phase], parent, calls[0].Start, calls[n-1].End)
		s.layers(calls, frame)
		i += n
	}
}

// phaseOf returns the phase of a step that a call belongs to.
func phaseOf(k *Call) int {
	switch k.Op {
	case OpCopyIn:
		return 0
	case OpSync, opSoftmax, opSample, OpCopyOut:
		return 2
	}
	return 1
}

// layers puts the calls of each layer into a frame.
func (s *stack) layers(calls []Call, parent int) {
	for i := 0; i < len(calls); {
		n := 1
		for i+n < len(calls) && calls[i+n].Layer == calls[i].Layer {
			n++
		}
		frame := parent
		if layer := calls[i].Layer; layer >= 0 {
			frame = s.python(fmt.Sprintf("nn.Module: LlamaDecoderLayer_%d", layer), parent, calls[i].Start, calls[i+n-1].End)
		}
		for j := range calls[i:][:n] {
			s.frames(&calls[i+j], frame)
		}
		i += n
	}
}

// frames writes the Config.Stacks frames of a call: the innermost one, up to two around it, and the others as short frames
// before it.
func (s *stack) frames(k *Call, parent int) {
	row := &OpTable[k.Op]
	if s.n >= 3 && row.module != "" {
		parent = s.python(row.module, parent, k.At(partModule), k.At(partModuleEnd))
	}
	if s.n >= 2 {
		parent = s.python(row.frames[0], parent, k.At(partFrame), k.At(partFrameEnd))
	}
	from, to := k.At(partSmall), k.At(partSmallEnd)
	for i := range int64(s.n - 3) {
		small := smallFrames[i%int64(len(smallFrames))]
		s.python(small, parent, from+(to-from)*i/int64(s.n-3), from+(to-from)*(i+1)/int64(s.n-3)-1)
	}
	s.python(row.frames[1], parent, k.At(partBuiltin), k.At(partBuiltinEnd))
}

// smallFrames are short Python functions in between.
var smallFrames = [...]string{
	"<built-in function len>",
	"torch/nn/modules/module.py(1940): __getattr__",
	"<built-in function isinstance>",
	"sglang/srt/utils/common.py(312): is_cuda",
	"<built-in method is_contiguous of Tensor object at 0x7f6a5c0b7d30>",
	"torch/_ops.py(1240): __call__",
	"<built-in method empty of type object at 0x7f6c2e1a5ac0>",
}
