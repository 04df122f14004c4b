package torch

import (
	"time"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// StallCause is what keeps a host from launching more.
type StallCause uint8

const (
	StallItem      StallCause = iota + 1 // .item() waits for the GPU while Python is slow, although more could be launched
	StallPageable                        // a copy from memory that is not pinned
	StallMalloc                          // the caching allocator asks CUDA for memory
	StallModule                          // a kernel is loaded
	StallCollect                         // Python collects garbage
	StallLock                            // another thread holds the interpreter lock
	StallTokenizer                       // Python waits for the result of a slow tokenizer thread
)

// A Stall keeps the hosts of a recording from launching more, on all ranks alike: while they process the result of a step,
// after which the GPU is idle; StallItem does it at the end of the step itself. Everything after it is recorded later; the
// times no longer agree with the OTLP of the run.
type Stall struct {
	Cause  StallCause
	Length time.Duration
	Every  int // steps; 0 is once, in the middle
}

// A Warp is a piece of true time that the recording shows stretched: [WarpTime] ns from At on.
type Warp struct{ At, length int64 }

// WarpTime is the length of true time that is stretched, in ns: a stall is divided into permilles of it.
const WarpTime = 1000

// Warps are the stalls of a recording, in order.
type Warps []Warp

// Warps returns the stalls of a recording.
func (c *Capture) Warps(passes []Pass) (list Warps) {
	s := &c.config().Stall
	if s.Cause == 0 {
		return nil
	}
	for i := range passes {
		p := &passes[i]
		at := p.Rank.Computed + 2*us
		if s.Cause == StallItem {
			at = p.End - 100 - WarpTime
		}
		due := s.Every > 0 && i%s.Every == 0 || s.Every == 0 && i >= len(passes)/2 && len(list) == 0
		if due && p.End != 0 && at+us < p.Settled {
			list = append(list, Warp{at, int64(s.Length)})
		}
	}
	return list
}

// Shown returns a true time as the recording shows it, on the clock of the host.
func (w Warps) Shown(clock *simulator.Clock, at int64) int64 {
	shown := clock.At(at)
	for i := range w {
		if at <= w[i].At {
			break
		}
		shown += min(at-w[i].At, WarpTime) * (w[i].length - WarpTime) / WarpTime
	}
	return shown
}

// shown is [Warps.Shown] of the recording.
func (t *writer) shown(at int64) int64 { return t.warps.Shown(t.clock, at) }

// stalls writes the activity of the host in its stalls.
func (c *Capture) stalls(t *writer) {
	for i, w := range t.warps {
		s := stall{t, w.At, stallIDs + 10*i}
		stallWriters[c.config().Stall.Cause](&s)
	}
}

// stallIDs is the first correlation and External id of stalls.
const stallIDs = 900_000

// A stall is the stall that is being written. Times are permilles of it.
type stall struct {
	*writer
	at int64
	id int
}

var stallWriters = [...]func(*stall){
	StallItem: func(s *stall) {
		s.frame("<built-in method item of Tensor object at 0x7f6a5c0b7d30>", 0, 530)
		s.operator("aten::item", s.id, "", s.at+1, s.at+529)
		s.operator("aten::_local_scalar_dense", s.id+1, "", s.at+2, s.at+528)
		s.runtime(APIMemcpy, s.id+1, s.id, s.at+3, s.at+5)
		s.copy("Memcpy DtoH (Device -> Pageable)", 10, 515)
		s.runtime(APIStreamSync, s.id+1, s.id+1, s.at+6, s.at+525)
	},
	StallPageable: func(s *stall) {
		s.frame("<built-in method to of Tensor object at 0x7f6a5c0b7d30>", 0, 995)
		s.operator("aten::to", s.id, "", s.at+1, s.at+994)
		s.operator("aten::copy_", s.id+1, "", s.at+2, s.at+993)
		s.runtime(APIMemcpy, s.id+1, s.id, s.at+3, s.at+992)
		s.copy("Memcpy HtoD (Pageable -> Device)", 960, 990)
	},
	StallMalloc: func(s *stall) {
		s.frame("<built-in method empty of type object at 0x7f6c2e1a5ac0>", 0, 995)
		s.operator("aten::empty", s.id, "", s.at+1, s.at+994)
		s.runtime(APIMalloc, s.id, s.id, s.at+2, s.at+993)
	},
	StallModule: func(s *stall) {
		s.frame("triton/compiler/compiler.py(414): _init_handles", 0, 995)
		s.runtime(APIModuleLoad, 0, s.id, s.at+2, s.at+993)
	},
	StallCollect: func(s *stall) { s.frame("Python GC", 2, 995) },
	StallLock: func(s *stall) {
		other := s.pid + 7
		s.pythonOn(other, "sglang/srt/managers/detokenizer_manager.py(153): handle_batch_token_id_out", 0, s.at-us, s.at+998)
		for i := range int64(24) {
			s.pythonOn(other, "transformers/tokenization_utils_fast.py(640): _decode", 0, s.at+40*i+5, s.at+40*i+44)
		}
	},
	StallTokenizer: func(s *stall) {
		s.frame("concurrent/futures/_base.py(428): result", 0, 998)
		s.frame("threading.py(359): wait", 1, 997)
		s.frame("<built-in method acquire of _thread.lock object at 0x7f6a5c0b9e40>", 2, 996)
		other := s.pid + 11
		s.pythonOn(other, "sglang/srt/managers/tokenizer_manager.py(575): _tokenize_one_request", 0, s.at-us, s.at+995)
		s.pythonOn(other, "transformers/tokenization_utils_fast.py(540): _batch_encode_plus", 0, s.at+4, s.at+994)
		s.pythonOn(other, "<built-in method encode_batch of tokenizers.Tokenizer object at 0x7f6a5c0ba150>", 0, s.at+5, s.at+993)
	},
}

// frame writes a Python frame of the scheduler.
func (s *stall) frame(name string, from, to int64) { s.python(name, 0, s.at+from, s.at+to) }

// copy writes a copy on the GPU.
func (s *stall) copy(name string, from, to int64) {
	s.slice(CatMemcpy, name, s.gpu, CopyStream, s.at+from, s.at+to)
	s.copied(CopyStream, s.id, TokenBytes, to-from)
	s.end()
	s.flow(false, s.id, s.gpu, CopyStream, s.at+from)
}
