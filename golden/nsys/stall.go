package nsys

import "github.com/sgtrace/sgtrace/golden/torch"

// stalls adds what the host does in its stalls, as far as exports have that: what Python does
// is not in them.
func (p *process) stalls() {
	for i, w := range p.warps {
		s := stall{p, w.At, stallCorrelations + i}
		switch p.host.config.Torch.Stall.Cause {
		case torch.StallItem:
			s.copy(torch.OpCopyOut, 3, 5, 10, 515)
			s.call(torch.APIStreamSync, 6, 525)
		case torch.StallPageable:
			s.copy(torch.OpCopyIn, 3, 992, 960, 990)
		case torch.StallMalloc:
			s.call(torch.APIMalloc, 2, 993)
		case torch.StallModule:
			s.call(torch.APIModuleLoad, 2, 993)
		case torch.StallLock: // the interpreter lock is a condition, of which each wait takes 5 ms at most
			s.system("pthread_cond_timedwait", 2, 995)
		case torch.StallTokenizer:
			s.system("pthread_cond_wait", 2, 995)
		}
	}
}

// stallCorrelations is the first correlation of the calls in stalls.
const stallCorrelations = 900_000

// A stall is one that is being added. Times are permilles of it.
type stall struct {
	*process
	at          int64
	correlation int
}

func (s *stall) call(api torch.APIKind, from, to int64) {
	s.process.call(api, s.correlation, s.at+from, s.at+to)
}

// copy adds a copy from or to memory that is not pinned, and its call.
func (s *stall) copy(op torch.OpKind, callFrom, callTo, from, to int64) {
	s.work = append(s.work, work{interval: s.interval(s.at+from, s.at+to), op: op, correlation: s.correlation, bytes: torch.TokenBytes,
		pageable: true, call: len(s.calls), step: -1})
	s.call(torch.APIMemcpy, callFrom, callTo)
}

// system adds a call of the main thread into the operating system.
func (s *stall) system(name string, from, to int64) {
	s.os = append(s.os, osCall{interval: s.interval(s.at+from, s.at+to), name: name})
}
