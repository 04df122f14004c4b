package gaps

import (
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// Names say what a thread does, without what differs from call to call.
func TestNames(t *testing.T) {
	syms := trace.NewSymbols()
	n := newNames(syms)
	for _, c := range []struct {
		kind frameKind
		name string
		want string // the name without what differs
		did  Did
		own  bool
	}{
		{pythonFrame, "sglang/srt/managers/scheduler.py(2262): run_batch", "sglang/srt/managers/scheduler.py(2262): run_batch", InPython, true},
		{pythonFrame, "/usr/lib/python3/dist-packages/vllm/v1/engine/core.py(9): step", "/usr/lib/python3/dist-packages/vllm/v1/engine/core.py(9): step", InPython, true},
		{pythonFrame, "/usr/lib/python3.12/threading.py(359): wait", "/usr/lib/python3.12/threading.py(359): wait", Locked, false},
		{pythonFrame, "torch/nn/modules/module.py(1743): _call_impl", "torch/nn/modules/module.py(1743): _call_impl", InPython, false},
		{pythonFrame, "<built-in method item of Tensor object at 0x7f12ab>", "<built-in method item of Tensor>", InPython, false},
		{pythonFrame, "<built-in method acquire of _thread.lock object at 0x7f12ab>", "<built-in method acquire of _thread.lock>", Locked, false},
		{pythonFrame, "<built-in function sleep>", "<built-in function sleep>", Sleeping, false},
		{pythonFrame, "Python GC", "Python GC", Collecting, false},
		{rangeFrame, "step[DECODE bs=32]", "decode bs=17-32 step", InRange, false},
		{rangeFrame, "ProfilerStep#7", "ProfilerStep", InRange, false},
		{rangeFrame, "aten::copy_, seq = 7, op_id = 317168", "aten::copy_", InOperator, false},
		{systemFrame, "pthread_cond_timedwait", "pthread_cond_timedwait", Locked, false},
		{systemFrame, "epoll_wait", "epoll_wait", Sleeping, false},
		{systemFrame, "read", "read", SystemCall, false},
		{callFrame, "cudaMemcpyAsync", "cudaMemcpyAsync", Copying, false},
		{callFrame, "cuModuleLoadData", "cuModuleLoadData", LoadingModule, false},
		{callFrame, "cudaMalloc_v3020", "cudaMalloc", Allocating, false},
		{callFrame, "hipDeviceSynchronize", "hipDeviceSynchronize", Syncing, false},
		{callFrame, "cudaGraphLaunch", "cudaGraphLaunch", Launching, false},
		{callFrame, "cudaEventRecord", "cudaEventRecord", OtherCall, false},
	} {
		m := n.of(c.kind, syms.Intern(c.name))
		if syms.Name(m.name) != c.want || m.did != c.did || m.own != c.own {
			t.Errorf("%s is %q, %s, own %v", c.name, syms.Name(m.name), m.did, m.own)
		}
	}
}
