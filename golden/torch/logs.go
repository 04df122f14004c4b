package torch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// writeLogs writes the output of ranks, with the keys of PyTorch 2.9 and NCCL 2.27 in their order.
func (j *job) writeLogs(dir string, form HangForm) error {
	var together strings.Builder
	for rank := range j.program {
		if slices.Contains(j.truth.Silent, rank) {
			continue
		}
		if form == WatchdogLog {
			j.watchdog(&together, rank)
			continue
		}
		lines := j.nccl(rank)
		if form == NCCLLog {
			together.WriteString(lines)
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("nccl_node%d_%d.log", rank/8, 4000+rank)), []byte(lines), 0o644); err != nil {
			return err
		}
	}
	if together.Len() == 0 {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, "stderr.log"), []byte(together.String()), 0o644)
}

// torchTypes are the watchdog's names of operations.
var torchTypes = map[string]string{"all_reduce": "ALLREDUCE", "_all_gather_base": "_ALLGATHER_BASE", "_reduce_scatter_base": "_REDUCE_SCATTER_BASE", "broadcast": "BROADCAST", "gather": "GATHER"}

// timeout is the timeout of collectives.
const timeout = 600 * time.Second

// watchdog writes the output of the watchdog of a rank.
func (j *job) watchdog(b *strings.Builder, rank int) {
	timedOut := false
	for id, g := range j.mine[rank] {
		enqueued, completed, first := j.reached(rank, g)
		if first == nil {
			continue
		}
		timedOut = true
		late := 3 * time.Millisecond
		at := time.Unix(0, first.created).Add(timeout + late).UTC()
		head := func(line int) string {
			return fmt.Sprintf("[rank%d]:[E%d %s ProcessGroupNCCL.cpp:%d] ", rank, int(at.Month())*100+at.Day(), at.Format("15:04:05.000000000"), line)
		}
		member := slices.Index(j.groups[g].ranks, rank)
		numel := func(of []int64) int64 { return of[0] * of[1] }
		fmt.Fprintf(b, "%s[Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=%d, OpType=%s, NumelIn=%d, NumelOut=%d, Timeout(ms)=600000) ran for %d milliseconds before timing out.\n",
			head(683), member, first.seq, torchTypes[first.name], numel(first.in), numel(first.out), (timeout+late)/time.Millisecond)
		at = at.Add(200 * time.Microsecond)
		fmt.Fprintf(b, "%s[PG ID %d PG GUID %s(%s) Rank %d]  failure detected by watchdog at work sequence id: %d PG status: last enqueued work: %d, last completed work: %d\n",
			head(2241), id, j.groupName(g), j.groups[g].desc, member, first.seq, enqueued, completed)
	}
	if timedOut {
		return
	}
	enqueued, completed, _ := j.reached(rank, 0)
	at := time.Unix(0, start).Add(timeout + 10*time.Second).UTC()
	fmt.Fprintf(b, "[rank%d]:[E%d %s ProcessGroupNCCL.cpp:1858] [PG ID 0 PG GUID 0(default_pg) Rank %d] Received a dump signal due to a collective timeout from  rank 1 and we will try our best to dump the debug info. Last enqueued NCCL work: %d, last completed NCCL work: %d.This is most likely caused by incorrect usages of collectives\n",
		rank, int(at.Month())*100+at.Day(), at.Format("15:04:05.000000000"), rank, enqueued, completed)
}

// reached returns the progress of a rank in a group, and the first op there that has not ended; nil if there is none.
func (j *job) reached(rank, g int) (enqueued, completed int64, first *op) {
	enqueued, completed = -1, -1
	for i := range j.program[rank][:j.entered[rank]] {
		o := &j.program[rank][i]
		if o.group != g {
			continue
		}
		if enqueued = o.seq; o.done {
			completed = o.seq
		} else if first == nil {
			first = o
		}
	}
	return enqueued, completed, first
}

var (
	ncclNames = map[string]string{"all_reduce": "AllReduce", "_all_gather_base": "AllGather", "_reduce_scatter_base": "ReduceScatter", "broadcast": "Broadcast", "gather": "Gather"}
	ncclTypes = map[string]int{"BFloat16": 9, "Float": 7, "Half": 6}
)

// nccl returns NCCL's log of a rank. Half of the jobs are finally aborted by the watchdog.
func (j *job) nccl(rank int) string {
	var b strings.Builder
	say := func(format string, args ...any) {
		fmt.Fprintf(&b, "node%d:%d:%d [%d] NCCL INFO ", rank/8, 4000+rank, 4000+rank, rank%8)
		fmt.Fprintf(&b, format+"\n", args...)
	}
	at := func(g int) string { return fmt.Sprintf("0x55d%d%05x", rank, 0xa0000+g) }
	describe := func(g int) string {
		return fmt.Sprintf("comm %s rank %d nranks %d cudaDev %d", at(g), slices.Index(j.groups[g].ranks, rank), len(j.groups[g].ranks), rank%8)
	}
	say("NET/IB : No device found.")
	for k, g := range j.mine[rank] {
		if k == 0 {
			say("ncclCommInitRankConfig %s nvmlDev %d busId %x000 commId 0x54fe282d32a87d85 - Init START", describe(g), rank%8, rank%8+1)
			say("comm %s rank %d nRanks %d nNodes 1 localRanks 8 localRank %d MNNVL 0", at(g), rank, len(j.program), rank%8)
			continue
		}
		say("ncclCommSplit %s nvmlDev %d busId %x000 parent %s splitCount %d color %d key %d- Init START", describe(g), rank%8, rank%8+1, at(0), k, 1000+g, rank)
	}
	for i := range j.program[rank][:j.entered[rank]] {
		o := &j.program[rank][i]
		say("%s: opCount 0 sendbuff 0x7f%06x00 recvbuff 0x7f%06x00 count %d datatype %d op 0 root 0 comm %s [nranks=%d] stream 0x55d1", ncclNames[o.name], i, i,
			o.in[0]*o.in[1], ncclTypes[o.typ], at(o.group), len(j.groups[o.group].ranks))
	}
	for _, g := range j.mine[rank] {
		if j.Seed%2 == 0 {
			say("%s busId %x000 - Abort COMPLETE", describe(g), rank%8+1)
		}
	}
	return b.String()
}
