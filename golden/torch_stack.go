package golden

import "fmt"

// stacks writes the Python frames of all steps: the loop of the scheduler around
// them, and in a step its phases, layers and operators.
func (c *capture) stacks(t *torchWriter, passes []pass, from, to int64) {
	process := t.python("sglang/srt/managers/scheduler.py(3105): run_scheduler_process", 0, from, to)
	loop := t.python("sglang/srt/managers/scheduler.py(1130): event_loop_normal", process, from+us, to-us)
	for i := range passes {
		p := &passes[i]
		if p.picked != 0 {
			t.python("sglang/srt/managers/scheduler.py(1790): get_next_batch_to_run", loop, p.picking-50, p.picked+50)
		}
		batch := t.python("sglang/srt/managers/scheduler.py(2262): run_batch", loop, p.rank.scheduled+50, p.rank.computed+50)
		if p.end != 0 {
			s := stack{t, p, c.config().Stacks}
			s.phases(t.python("sglang/srt/managers/tp_worker.py(335): forward_batch_generation", batch, p.begin-1, p.end+1))
		}
		if p.settled != 0 {
			t.python("sglang/srt/managers/scheduler.py(2376): process_batch_result", loop, p.rank.computed+60, p.settled+50)
		}
	}
}

// stack writes the frames inside one step.
type stack struct {
	*torchWriter
	pass *pass
	n    int // frames of an operator
}

// phases divides the calls of a step into inputs, the model, and sampling.
func (s *stack) phases(parent int) {
	names := [...]string{
		"sglang/srt/model_executor/forward_batch_info.py(268): init_new",
		"sglang/srt/model_executor/model_runner.py(1942): forward",
		"sglang/srt/model_executor/model_runner.py(2016): sample",
	}
	for i := 0; i < len(s.pass.calls); {
		phase := phaseOf(&s.pass.calls[i])
		n := 1
		for i+n < len(s.pass.calls) && phaseOf(&s.pass.calls[i+n]) == phase {
			n++
		}
		calls := s.pass.calls[i:][:n]
		frame := s.python(names[phase], parent, calls[0].start, calls[n-1].end)
		s.layers(calls, frame)
		i += n
	}
}

// phaseOf returns the phase of a step that a call belongs to.
func phaseOf(k *call) int {
	switch k.op {
	case opCopyIn:
		return 0
	case opSync, opSoftmax, opSample, opCopyOut:
		return 2
	}
	return 1
}

// layers puts the calls of each layer into a frame.
func (s *stack) layers(calls []call, parent int) {
	for i := 0; i < len(calls); {
		n := 1
		for i+n < len(calls) && calls[i+n].layer == calls[i].layer {
			n++
		}
		frame := parent
		if layer := calls[i].layer; layer >= 0 {
			frame = s.python(fmt.Sprintf("nn.Module: LlamaDecoderLayer_%d", layer), parent, calls[i].start, calls[i+n-1].end)
		}
		for j := range calls[i:][:n] {
			s.frames(&calls[i+j], frame)
		}
		i += n
	}
}

// frames writes the frames of a call: the innermost one, then those around it as
// far as TorchConfig.Stacks goes, and from there on little ones before it.
func (s *stack) frames(k *call, parent int) {
	row := &opTable[k.op]
	if s.n >= 3 && row.module != "" {
		parent = s.python(row.module, parent, k.at(partModule), k.at(partModuleEnd))
	}
	if s.n >= 2 {
		parent = s.python(row.frames[0], parent, k.at(partFrame), k.at(partFrameEnd))
	}
	from, to := k.at(partSmall), k.at(partSmallEnd)
	for i := range int64(s.n - 3) {
		small := smallFrames[i%int64(len(smallFrames))]
		s.python(small, parent, from+(to-from)*i/int64(s.n-3), from+(to-from)*(i+1)/int64(s.n-3)-1)
	}
	s.python(row.frames[1], parent, k.at(partBuiltin), k.at(partBuiltinEnd))
}

// smallFrames are what Python does in between.
var smallFrames = [...]string{
	"<built-in function len>",
	"torch/nn/modules/module.py(1940): __getattr__",
	"<built-in function isinstance>",
	"sglang/srt/utils/common.py(312): is_cuda",
	"<built-in method is_contiguous of Tensor object at 0x7f6a5c0b7d30>",
	"torch/_ops.py(1240): __call__",
	"<built-in method empty of type object at 0x7f6c2e1a5ac0>",
}
