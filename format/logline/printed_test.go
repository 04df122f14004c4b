package logline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// read reads lines of any kind.
func read(text string) *recorder.InFlight {
	set := recorder.NewInFlight(trace.NewSymbols())
	r := NewCollectiveReader(set, "stderr.log", 0)
	for line := range strings.Lines(text) {
		b := []byte(strings.TrimRight(line, "\n"))
		if _, ok := r.NCCL(b); ok {
			continue
		}
		if g, rest, ok := GlogOf(b); ok {
			at := trace.Time(0)
			if g.Month > 0 {
				at = g.Time(2026)
			}
			r.Watchdog(rest, g.Rank, at)
			continue
		}
		if !r.Spied(b, 0) && !r.Unheaded(b) {
			r.Mismatch(b)
		}
	}
	r.End()
	set.Finish(func(int32) trace.Time { return 0 })
	return set
}

// A collective mismatch that PyTorch reports for two ranks gives the collectives they are in. Messages about
// the sizes of the compared data give nothing. Ranks whose position in the job is unknown are dropped.
func TestMismatch(t *testing.T) {
	const device = "TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda, layout=Strided (default), requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt))"
	for _, c := range []struct{ text, want string }{
		{"[rank1]: RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=3104, OpType=ALLREDUCE, TensorShape=[195, 8], TensorDtypes=BFloat16, " + device +
			"), but Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=3104, OpType=ALLREDUCE, TensorShape=[51, 8], TensorDtypes=BFloat16, " + device + ").Collectives differ in the following aspects:   Tensor Tensor shapes: 195vs 51\n",
			"PyTorch watchdog rank 0 :0  [? () 0/-1 id -1, -1 -1; all_reduce #3104 [[51, 8]] BFloat16]\nPyTorch watchdog rank 1 :0  [? () 1/-1 id -1, -1 -1; all_reduce #3104 [[195, 8]] BFloat16]\n"},
		{"RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=101, OpType=ALLGATHER, TensorShape=[1], TensorDtypes=Long, " + device +
			"), but Rank 7 is running collective: CollectiveFingerPrint(SequenceNumber=0OpType=REDUCE).Collectives differ in the following aspects:   Sequence number: 101vs 0\n",
			"PyTorch watchdog rank 1 :0  [? () 1/-1 id -1, -1 -1; all_gather #101 [[1]] Long]\n"},
		{"[rank6]: RuntimeError: Detected mismatch between collectives on ranks. Rank 2 is running collective: CollectiveFingerPrint(SequenceNumber=5, OpType=BROADCAST, TensorShape=[1], TensorDtypes=Long, " + device +
			"), but Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=5, OpType=ALLGATHER, TensorShape=[1], TensorDtypes=Long, " + device + ").\n",
			"PyTorch watchdog rank 6 :0  [? () 2/-1 id -1, -1 -1; broadcast #5 [[1]] Long]\n"},
	} {
		if got := describe(read(c.text)); got != c.want {
			t.Errorf("got\n%swant\n%s", got, c.want)
		}
	}
}

// describe prints dumps, one per line.
func describe(set *recorder.InFlight) string {
	var b strings.Builder
	name := set.Syms.Name
	for _, d := range set.Dumps {
		fmt.Fprintf(&b, "%s rank %d %s:%d %s", d.By, d.Rank, d.Host, d.PID, d.Title)
		for _, g := range d.Groups {
			fmt.Fprintf(&b, " [%s (%s) %d/%d id %d, %d %d", g.Name, g.Desc, g.Member, g.Size, g.ID, g.Enqueued, g.Completed)
			for i := range d.Ops {
				if o := &d.Ops[i]; &d.Groups[o.Group] == &g || d.Groups[o.Group].Name == g.Name {
					fmt.Fprintf(&b, "; %s #%d %s %s", name(o.Name), o.Seq, name(o.In.Text), name(o.InT))
					if o.Created != 0 {
						fmt.Fprintf(&b, " %s", time.Unix(0, int64(o.Created)).UTC().Format("01-02 15:04:05.000"))
					}
				}
			}
			b.WriteString("]")
		}
		for _, t := range d.Threads {
			fmt.Fprintf(&b, " {%s %s:", t.Name, t.State)
			if t.Stack >= 0 {
				for _, f := range d.Stacks[t.Stack] {
					fmt.Fprintf(&b, " %s@%s:%d", name(f.Name), name(f.File), f.Line)
				}
			}
			b.WriteString("}")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Lines of all versions, plain and with framework prefixes, give the same.
func TestWatchdog(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"2.9", `(RayWorker pid=9, ip=10.0.0.1) [rank9]:[E129 16:38:47.500000000 ProcessGroupNCCL.cpp:683] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=522, OpType=ALLTOALL_BASE, NumelIn=566, NumelOut=566, Timeout(ms)=600000) ran for 600500 milliseconds before timing out.
(RayWorker pid=9, ip=10.0.0.1) [rank9]:[E129 16:38:47.600000000 ProcessGroupNCCL.cpp:2241] [PG ID 12 PG GUID 100(EXPERT_PARALLEL_GROUP) Rank 1]  failure detected by watchdog at work sequence id: 522 PG status: last enqueued work: 558, last completed work: 521
`, "PyTorch watchdog rank 9 :0  [100 (EXPERT_PARALLEL_GROUP) 1/-1 id 12, 558 521; all_to_all #522 566 elements  01-29 16:28:47.000]\n"},
		{"2.6", `[rank1]:[E626 06:24:44.903881913 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=808, OpType=ALLREDUCE, NumelIn=98, NumelOut=98, Timeout(ms)=600000) ran for 600000 milliseconds before timing out.
[rank1]:[E626 06:24:44.906457629 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank 1] Exception (either an error or timeout) detected by watchdog at work: 808, last enqueued NCCL work: 811, last completed NCCL work: 807.
`, "PyTorch watchdog rank 1 :0  [0 (default_pg) 1/-1 id 0, 811 807; all_reduce #808 98 elements  06-26 06:14:44.903]\n"},
		{"2.4", `[rank4]:[E1016 03:31:38.000000000 ProcessGroupNCCL.cpp:607] [Rank 4] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=91, OpType=_ALLGATHER_BASE, NumelIn=19, NumelOut=152, Timeout(ms)=600000) ran for 600000 milliseconds before timing out.
[rank4]:[E1016 03:31:38.000000000 ProcessGroupNCCL.cpp:1709] [PG 3 Rank 4] Timeout at NCCL work: 91, last enqueued NCCL work: 91, last completed NCCL work: 90.
`, "PyTorch watchdog rank 4 :0  [3 () 4/8 id 3, 91 90; _all_gather_base #91 19 elements  10-16 03:21:38.000]\n"},
		{"1.13, without a group and a time", "[E ProcessGroupNCCL.cpp:828] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=BROADCAST, Timeout(ms)=1800000) ran for 1800500 milliseconds before timing out.\n",
			"PyTorch watchdog rank 3 :0  [? () -1/-1 id -1, -1 -1; broadcast #5  ]\n"},
		{"a rank whose group only the line of another one names: both have one number in the group and in the job", `[rank0]:[E321 02:07:08.000000000 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=15, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600000 milliseconds before timing out.
[rank2]:[E321 02:07:08.000000000 ProcessGroupNCCL.cpp:607] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=15, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600000 milliseconds before timing out.
[rank6]:[E321 02:07:08.000000000 ProcessGroupNCCL.cpp:607] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=15, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600000 milliseconds before timing out.
[rank0]:[E321 02:07:08.000000000 ProcessGroupNCCL.cpp:1664] [PG 1 Rank 0] Exception (either an error or timeout) detected by watchdog at work: 15, last enqueued NCCL work: 17, last completed NCCL work: 14.
`, `PyTorch watchdog rank 0 :0  [1 () 0/-1 id 1, 17 14; all_reduce #15 4 elements  03-21 01:57:08.000]
PyTorch watchdog rank 2 :0  [1 () 2/-1 id 1, -1 -1; all_reduce #15 4 elements  03-21 01:57:08.000]
PyTorch watchdog rank 6 :0  [? () -1/-1 id -1, -1 -1; all_reduce #15 4 elements  03-21 01:57:08.000]
`},
		{"a rank that does something else at that number: it is of the same group if that began at the same time", `[rank0]:[E321 02:07:08.000000000 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=15, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600000 milliseconds before timing out.
[rank2]:[E321 02:07:08.900000000 ProcessGroupNCCL.cpp:607] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=15, OpType=BROADCAST, NumelIn=9, NumelOut=9, Timeout(ms)=600000) ran for 600000 milliseconds before timing out.
[rank3]:[E321 02:07:09.900000000 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=15, OpType=BROADCAST, NumelIn=9, NumelOut=9, Timeout(ms)=600000) ran for 600000 milliseconds before timing out.
[rank0]:[E321 02:07:08.000000000 ProcessGroupNCCL.cpp:1664] [PG 1 Rank 0] Exception (either an error or timeout) detected by watchdog at work: 15, last enqueued NCCL work: 17, last completed NCCL work: 14.
`, `PyTorch watchdog rank 0 :0  [1 () 0/-1 id 1, 17 14; all_reduce #15 4 elements  03-21 01:57:08.000]
PyTorch watchdog rank 2 :0  [1 () 2/-1 id -1, -1 -1; broadcast #15 9 elements  03-21 01:57:08.900]
PyTorch watchdog rank 3 :0  [? () -1/-1 id -1, -1 -1; broadcast #15 9 elements  03-21 01:57:09.900]
`},
		{"what others cause", `[rank0]:[E810 03:04:12.061827749 ProcessGroupNCCL.cpp:1858] [PG ID 0 PG GUID 0(default_pg) Rank 0] Received a dump signal due to a collective timeout from  rank 1 and we will try our best to dump the debug info. Last enqueued NCCL work: 77, last completed NCCL work: 77.This is most likely caused by
`, "PyTorch watchdog rank 0 :0  [0 (default_pg) 0/-1 id 0, 77 77]\n"},
		{"two processes, the second of which timed out in two groups", `[rank1]:[E614 02:07:50.000000000 ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=309, OpType=BARRIER, Timeout(ms)=1000) ran for 1000 milliseconds before timing out.
[rank1]:[E614 02:07:51.000000000 ProcessGroupNCCL.cpp:2168] [PG ID 0 PG GUID 0(default_pg) Rank 1]  failure detected by watchdog at work sequence id: 309 PG status: last enqueued work: 309, last completed work: 308
[rank1]:[E614 04:46:11.000000000 ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=BARRIER, Timeout(ms)=1000) ran for 1000 milliseconds before timing out.
[rank1]:[E614 04:46:11.000000000 ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, Timeout(ms)=1000) ran for 1000 milliseconds before timing out.
[rank1]:[E614 04:46:11.000000000 ProcessGroupNCCL.cpp:2168] [PG ID 0 PG GUID 0(default_pg) Rank 1]  failure detected by watchdog at work sequence id: 7 PG status: last enqueued work: 7, last completed work: 6
`, "PyTorch watchdog rank 1 :0  [0 (default_pg) 1/-1 id 0, 7 6; barrier #7   06-14 04:46:10.000] [? () -1/-1 id -1, -1 -1; all_reduce #12   06-14 04:46:10.000]\n"},
		{"a report of several lines", `[rank2]:[E810 03:04:12.061827749 ProcessGroupNCCL.cpp:1858] [PG ID 0 PG GUID 0(default_pg) Rank 2] Timeout at NCCL work: 78, last enqueued NCCL work: 79, last completed NCCL work: 77.
	 - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:
	   - [0, 1] finished collective #77, but didn't join collective #78 (count from 1)
`, `PyTorch watchdog rank 0 :0  [0 (default_pg) 0/-1 id 0, 77 77]
PyTorch watchdog rank 1 :0  [0 (default_pg) 1/-1 id 0, 77 77]
PyTorch watchdog rank 2 :0  [0 (default_pg) 2/-1 id 0, 79 77]
`},
	} {
		if got := describe(read(c.text)); got != c.want {
			t.Errorf("%s: got\n%swant\n%s", c.name, got, c.want)
		}
	}
}

// A communicator joins ranks by commId, and a split one by its parent's commId. Fragments of other
// lines before a line and reused addresses do not matter.
func TestNCCL(t *testing.T) {
	got := describe(read(`n1:7:7 [0] NCCL INFO NET/IB : No device found.
n1:7:9 [0] NCCL INFO ncclCommInitRankConfig comm 0x5a rank 3 nranks 8 cudaDev 1 nvmlDev 1 busId 3e000 commId 0x81dc - Init START
n1:7:9 [0] NCCL INFO ncclCommSplit comm 0x5b rank 1 nranks 2 cudaDev 1 nvmlDev 1 busId 3e000 parent 0x5a splitCount 1 color 44 key 0- Init START
n1:7:9 [0] NCCL INFO comm 0x5a rank 3 nRanks 8 nNodes 1 localRanks 8 localRank 3 MNNVL 0
n1:7:7 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 100 datatype 9 op 0 root 0 comm 0x5a [nranks=8] stream 0x3
half a linen1:7:7 [0] NCCL INFO Broadcast: opCount 0 sendbuff 0x1 recvbuff 0x2 count 7 datatype 7 op 0 root 2 comm 0x5a [nranks=8] stream 0x3
n1:7:7 [0] NCCL INFO AllReduce: opCount 1f sendbuff 0x1 recvbuff 0x2 count 5 datatype 7 op 2 root 0 comm 0x5b [nranks=2] stream 0x3
n1:7:7 [0] NCCL INFO AllReduce: 8388608 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..23}
n1:7:7 [0] NCCL INFO comm 0x5b rank 1 nranks 2 cudaDev 1 busId 3e000 - Destroy COMPLETE
n1:7:9 [0] NCCL INFO ncclCommSplit comm 0x5b rank 0 nranks 2 cudaDev 1 nvmlDev 1 busId 3e000 parent 0x5a splitCount 2 color 45 key 0- Init START
`))
	want := "NCCL log rank 3 n1:7  [0x81dc (communicator 0x81dc) 3/8 id -1, 2 -1; AllReduce #1 100 elements bf16; Broadcast from 2 #2 7 elements fp32]" +
		" [0x81dc/1/44 (communicator 0x81dc/1/44) 1/2 id -1, 1 -1; AllReduce by max #1 5 elements fp32]" +
		" [0x81dc/2/45 (communicator 0x81dc/2/45) 0/2 id -1, -1 -1]\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// secret is in everything that must not be kept: command arguments and variable values.
const secret = "sk-CANARY-7f3a"

// The main thread comes first; variables that py-spy prints are skipped.
func TestPySpy(t *testing.T) {
	set := read(`Process 309: sglang::scheduler_DP1_TP3_EP3 --api-key ` + secret + `
Python v3.12.3 (/usr/bin/python3.12)

Thread 311 (idle): "Thread-1 (watch)"
    wait (threading.py:359)
Thread 309 (active+gil): "MainThread"
    at::_ops::copy_::call (libtorch_cpu.so)
    run_batch (sglang/srt/managers/scheduler.py:3232)
        Arguments:
            self: <Scheduler ` + secret + `>
        Locals:
            prompt: "` + secret + `"
[2026-01-01 00:00:00] something else
`)
	want := "py-spy rank -1 :309 sglang::scheduler_DP1_TP3_EP3 {MainThread active+gil: at::_ops::copy_::call@libtorch_cpu.so:0 run_batch@sglang/srt/managers/scheduler.py:3232} {Thread-1 (watch) idle: wait@threading.py:359}\n"
	if got := describe(set); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if d := set.Dumps[0]; d.Of.DP != 1 || d.Of.TP != 3 || d.Of.EP != 3 {
		t.Errorf("rank %v", d.Of)
	}
}

func FuzzLines(f *testing.F) {
	f.Add("[rank9]:[E129 16:38:47.5 ProcessGroupNCCL.cpp:683] [PG ID 1 PG GUID 0(x) Rank 1] Timeout at NCCL work: 91, last enqueued NCCL work: 91, last completed NCCL work: 90.")
	f.Add("n1:7:7 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 100 datatype 9 op 0 root 0 comm 0x5a [nranks=8] stream 0x3")
	f.Add("Process 3: a\nThread 3 (idle): \"MainThread\"\n    f (a.py:1)\n   - [0, 1] finished collective #77, but didn't join collective #78")
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range read(text).Dumps {
			for i := range d.Ops {
				if g := d.Ops[i].Group; g < 0 || int(g) >= len(d.Groups) {
					t.Fatalf("group %d of %d", g, len(d.Groups))
				}
			}
			for _, th := range d.Threads {
				if int(th.Stack) >= len(d.Stacks) {
					t.Fatal("a stack that is not there")
				}
			}
		}
	})
}

// Warnings about settings are not failures. RDMA statuses are those of ibv_wc_status.
func TestFailureOf(t *testing.T) {
	for warning, want := range map[string]string{
		"NET/IB : Got completion from peer 10.0.0.7<49189> with error 4, opcode 5327, len 5327, vendor err 81 (Send)":                               "RDMA with 10.0.0.7 failed: local protection error (n1, GPU 3)",
		"NET/IB: Got completion from peer 10.0.0.7<5> with status=IBV_WC_WR_FLUSH_ERR(5) opcode=IBV_WC_SEND(0) reqSize=0 vendor_err=244 hca mlx5_5": "RDMA with 10.0.0.7 over mlx5_5 failed: flushed, as the connection had failed before (n1, GPU 3)",
		"Cuda failure 'out of memory'": "Cuda failure 'out of memory' (n1, GPU 3)",
		"Missing \"iommu=pt\" from kernel command line which can lead to system instability or hang!": "",
	} {
		line := []byte("[2026-03-03 13:11:38] n1:7:9 [3] transport/net_ib.cc:2453 NCCL WARN " + warning)
		if got, ok := FailureOf(line, []byte(warning)); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q, %t", warning, got, ok)
		}
	}
}

// Line prefixes name a process, which vLLM may do twice, and may name its launcher, as in Ray.
func TestProcess(t *testing.T) {
	for b, want := range map[string][2]string{
		"(Worker_TP0 pid=8) ":                              {"Worker_TP0 pid=8", ""},
		"(Worker pid=8) (Worker_DP0_TP1 pid=8) ":           {"Worker_DP0_TP1 pid=8", ""},
		"(Replica pid=7, ip=10.0.0.1) (EngineCore pid=8) ": {"EngineCore pid=8", "(Replica pid=7, ip=10.0.0.1) "},
		"x (y) ": {"", "x (y) "},
	} {
		if process, before := Process([]byte(b)); string(process) != want[0] || string(before) != want[1] {
			t.Errorf("%q: %q behind %q", b, process, before)
		}
	}
}
