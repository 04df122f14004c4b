package logline

import (
	"bytes"
	"strings"

	"github.com/sgtrace/sgtrace/profile/recorder"
)

// Mismatch parses the message of a process group that checks collectives (TORCH_DISTRIBUTED_DEBUG=DETAIL), on
// one line:
//
//	[rank1]: RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective:
//	CollectiveFingerPrint(SequenceNumber=3104, OpType=ALLREDUCE, TensorShape=[195, 8], TensorDtypes=BFloat16,
//	TensorDeviceTypes=..), but Rank 0 is running collective: CollectiveFingerPrint(..).
//
// Ranks are ranks in the group, except for the one in front.
func (r *CollectiveReader) Mismatch(b []byte) bool {
	_, rest, ok := bytes.Cut(b, []byte("Detected mismatch between collectives on ranks. "))
	if !ok {
		return false
	}
	mine, other, _ := bytes.Cut(rest, []byte(", but Rank "))
	member, ok := number(mine, "Rank ")
	if !ok || member < 0 || member > 1<<20 {
		return true
	}
	rank := member // assume the group of all ranks, unless the line shows that they differ
	if n, ok := number(b[:len(b)-len(rest)], "[rank"); ok && n >= 0 && n < 1<<20 {
		rank = n
	}
	r.fingerprint(mine, int32(rank), int32(member))
	if n, ok := leading(other); ok && rank == member && n >= 0 && n < 1<<20 {
		r.fingerprint(other, int32(n), int32(n))
	}
	return true
}

// fingerprint adds the collective that a rank is in. It ignores one without sizes: PyTorch first compares the
// lengths of the fingerprints, and then prints these lengths as if they were fingerprints.
func (r *CollectiveReader) fingerprint(b []byte, rank, member int32) {
	seq, ok := number(b, "SequenceNumber=")
	if !ok || !bytes.Contains(b, []byte("TensorShape=[")) {
		return
	}
	w := r.watchedRank(rank)
	for i := range w.dump.Ops {
		if w.dump.Ops[i].Seq == seq && w.dump.Ops[i].State == recorder.Scheduled {
			return // already known
		}
	}
	name := string(token(b, "OpType=", ",) "))
	if known, ok := opNames[name]; ok {
		name = known
	}
	op := recorder.Op{Seq: seq, P2P: recorder.Unknown, Src: recorder.Unknown, Dst: recorder.Unknown, Stack: recorder.Unknown, Record: int64(len(w.dump.Ops)),
		Name: r.names.Intern([]byte(strings.ToLower(name))), InT: r.names.Intern(token(b, "TensorDtypes=", ", "))}
	op.Group = w.group(head{id: recorder.Unknown, member: member})
	w.dump.Groups[op.Group].Member = member
	var sizes []int64
	for part := range bytes.SplitSeq(token(b, "TensorShape=", "]"), []byte(",")) {
		if n, ok := leading(bytes.TrimLeft(part, "[ ")); ok {
			sizes = append(sizes, n)
		}
	}
	op.In = r.set.Shape([][]int64{sizes})
	w.dump.Ops = append(w.dump.Ops, op)
}
