package logline

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// A watched is what the watchdog reports about one rank.
type watched struct {
	dump   *recorder.FlightDump
	groups map[string]int32 // of the dump, by name
	member int32            // rank in lines without a group, or recorder.Unknown
	// loose are indexes of operations of the dump whose group is still unknown.
	loose []int
}

// TimedOut is in a line of the watchdog that does not identify the collective, and SaysTimedOut is the text of
// the instant for such a line.
const (
	TimedOut     = "Timeout at NCCL work"
	SaysTimedOut = "a collective timed out"
)

// Failed is in a line of the watchdog about a collective that failed or timed out.
const Failed = "failure detected by watchdog at work sequence id: "

// SaysFailed returns the text of the instant for such a line.
func SaysFailed(b []byte) string {
	if n, ok := number(b, "sequence id:"); ok {
		return fmt.Sprintf("PyTorch's watchdog met a failure in collective %d", n)
	}
	return "PyTorch's watchdog met a failure in a collective"
}

// Watchdog parses the text after the head of a line of PyTorch's C++ code: rank is the rank in the head, or
// recorder.Unknown, and at the time of the line. It reports whether the line is a known message of
// ProcessGroupNCCL.
func (r *CollectiveReader) Watchdog(b []byte, rank int32, at trace.Time) bool {
	head, message := prefixOf(b)
	switch {
	case rank >= 0:
	case head.member >= 0: // without torchrun's prefix, there is usually only one group
		rank = head.member
	default:
		return false
	}
	low := bytes.ToLower(message[:min(len(message), 600)])
	switch {
	case bytes.Contains(message, []byte("Watchdog caught collective operation timeout: ")):
		w := r.watchedRank(rank)
		w.member = head.member
		r.timeout(w, message, at)
	case bytes.Contains(low, []byte("last enqueued")):
		r.status(r.watchedRank(rank), head, low, at)
	case bytes.Contains(message, []byte("watchdog got stuck for")):
		w := r.watchedRank(rank)
		if s, ok := number(message, "watchdog got stuck for"); ok {
			w.dump.Stuck = s
		}
		w.saw(at)
	case bytes.Contains(message, []byte("Heartbeat monitor timed out!")):
		r.watchedRank(rank).saw(at)
	case bytes.Contains(message, []byte("to signal dumping")), bytes.Contains(message, []byte("preparing to dump debug info")),
		bytes.Contains(message, []byte("FlightRecorder is disabled")), bytes.Contains(message, []byte("taking the entire process down")),
		bytes.Contains(message, []byte("CCL operations have failed or timed out")), bytes.Contains(message, []byte("dump signal from another rank")):
	default:
		return r.desync(message)
	}
	return true
}

// A head is the prefix of a message of a process group.
type head struct {
	id         int64
	guid, desc string
	member     int32
}

// prefixOf parses "[PG ID 5 PG GUID 37(TENSOR_MODEL_PARALLEL_GROUP) Rank 1] ", "[PG 1 Rank 0] " until 2.4, or
// "[Rank 3] ".
func prefixOf(b []byte) (h head, message []byte) {
	h = head{id: recorder.Unknown, member: recorder.Unknown}
	inner, rest, ok := bytes.Cut(b, []byte("]"))
	if !ok || len(inner) == 0 || inner[0] != '[' || len(inner) > 200 {
		return h, b
	}
	if n, ok := number(inner, "Rank "); ok && n >= 0 && n < 1<<20 {
		h.member = int32(n)
	}
	switch {
	case bytes.HasPrefix(inner, []byte("[PG ID ")):
		h.id, _ = leading(inner[len("[PG ID "):])
		guid := inner[min(len(inner), bytes.Index(inner, []byte("PG GUID "))+len("PG GUID ")):]
		if i := bytes.LastIndex(guid, []byte(" Rank ")); i >= 0 {
			guid = guid[:i]
		}
		name, desc, _ := bytes.Cut(guid, []byte("("))
		h.guid, h.desc = string(bytes.TrimSpace(name)), string(bytes.TrimSuffix(desc, []byte(")")))
	case bytes.HasPrefix(inner, []byte("[PG ")):
		if n, ok := leading(inner[len("[PG "):]); ok {
			h.id, h.guid = n, string(token(inner, "[PG ", " "))
		}
	}
	if h.desc == "undefined" {
		h.desc = ""
	}
	return h, rest
}

// watchedRank returns the entry of a rank, adding it if it is new.
func (r *CollectiveReader) watchedRank(rank int32) *watched {
	return order.Memo(r.watched, rank, func() *watched {
		return &watched{dump: r.dump(recorder.Watchdog, rank), groups: map[string]int32{}, member: recorder.Unknown}
	})
}

func (w *watched) saw(at trace.Time) { w.dump.Time = max(w.dump.Time, at) }

// group returns the index of a group, adding it if it is new.
func (w *watched) group(h head) int32 {
	if h.guid == "" {
		h.guid = recorder.Nameless
	}
	i, ok := w.groups[h.guid]
	if !ok {
		i = int32(len(w.dump.Groups))
		w.groups[h.guid] = i
		g := recorder.NewGroup(h.guid, h.desc)
		g.ID, g.Member = h.id, h.member
		w.dump.Groups = append(w.dump.Groups, g)
	}
	return i
}

// opNames are the flight recorder's names of types of operations.
var opNames = map[string]string{"ALLREDUCE": "all_reduce", "BROADCAST": "broadcast", "_BROADCAST_OOP": "_broadcast_oop", "ALLGATHER": "all_gather", "_ALLGATHER_BASE": "_all_gather_base",
	"REDUCE": "reduce", "_REDUCE_OOP": "_reduce_oop", "REDUCE_SCATTER": "reduce_scatter", "_REDUCE_SCATTER_BASE": "_reduce_scatter_base", "GATHER": "gather", "SCATTER": "scatter",
	"ALLTOALL": "all_to_all", "ALLTOALL_BASE": "all_to_all", "BARRIER": "barrier", "COALESCED": "coalesced", "SEND": "send", "RECV": "recv", "RECVANYSOURCE": "recv", "ALLREDUCE_COALESCED": "allreduce_coalesced"}

// timeout parses "WorkNCCL(SeqNum=78, OpType=BROADCAST, NumelIn=80, NumelOut=80, Timeout(ms)=600000) ran for
// 600096 milliseconds before timing out."
func (r *CollectiveReader) timeout(w *watched, b []byte, at trace.Time) {
	w.saw(at)
	seq, ok := number(b, "SeqNum=")
	if !ok {
		return
	}
	op := recorder.Op{Seq: seq, P2P: recorder.Unknown, Src: recorder.Unknown, Dst: recorder.Unknown, Stack: recorder.Unknown, Group: recorder.Unknown, Record: int64(len(w.dump.Ops))}
	name := string(token(b, "OpType=", ",) "))
	if known, ok := opNames[name]; ok {
		name = known
	} else {
		name = strings.ToLower(name)
	}
	op.Name = r.names.Intern([]byte(name))
	op.In, op.Out = r.elements(b, "NumelIn="), r.elements(b, "NumelOut=")
	if ms, ok := number(b, " ran for"); ok && at != 0 && ms >= 0 && ms < 1<<40 {
		op.Created = at - trace.Time(ms)*1e6
	}
	if slices.ContainsFunc(w.loose, func(k int) bool { return w.dump.Ops[k].Seq == seq && w.dump.Ops[k].Name == op.Name }) {
		return // already known
	}
	w.loose = append(w.loose, len(w.dump.Ops))
	w.dump.Ops = append(w.dump.Ops, op)
}

// elements returns the number of elements after a key, as a shape.
func (r *CollectiveReader) elements(b []byte, key string) recorder.Shape {
	n, ok := number(b, key)
	if !ok || n < 0 {
		return recorder.Shape{Elements: recorder.Unknown}
	}
	return recorder.Shape{Text: r.names.Intern(append(slices.Clip(token(b, key, ",) ")), " elements"...)), Elements: n}
}

// status parses the progress of a group: "detected by watchdog at work: 78, last enqueued NCCL work: 79, last
// completed NCCL work: 77", or "Timeout at NCCL work: 31, ..", or "last enqueued work: 52258, last completed
// work: 52228".
func (r *CollectiveReader) status(w *watched, h head, low []byte, at trace.Time) {
	w.saw(at)
	i := w.group(h)
	g := &w.dump.Groups[i]
	g.Member, r.last = h.member, h
	enqueued, ok1 := numberBehind(low, "last enqueued")
	completed, ok2 := numberBehind(low, "last completed")
	if !ok1 || !ok2 {
		return
	}
	if enqueued < g.Enqueued { // from a restarted process
		w.forget(i)
	}
	g.Enqueued, g.Completed, g.Counted = enqueued, completed, true
	for _, key := range []string{"at work:", "sequence id:", "at nccl work:"} {
		if seq, ok := number(low, key); ok {
			w.settle(i, seq)
		}
	}
}

// forget removes the timed-out operations of a group.
func (w *watched) forget(group int32) {
	var kept []recorder.Op
	var loose []int
	for k := range w.dump.Ops {
		if w.dump.Ops[k].Group == group {
			continue
		}
		if slices.Contains(w.loose, k) {
			loose = append(loose, len(kept))
		}
		kept = append(kept, w.dump.Ops[k])
	}
	w.dump.Ops, w.loose = kept, loose
}

// numberBehind parses the number after the first colon after a text.
func numberBehind(b []byte, text string) (int64, bool) {
	i := bytes.Index(b, []byte(text))
	if i < 0 {
		return 0, false
	}
	return number(b[i:], ":")
}

// settle assigns the timed-out collective with a number to a group.
func (w *watched) settle(group int32, seq int64) {
	for i, k := range w.loose {
		if w.dump.Ops[k].Seq == seq {
			w.dump.Ops[k].Group = group
			w.loose = slices.Delete(w.loose, i, i+1)
			return
		}
	}
}

// A caught identifies a collective that timed out.
type caught struct {
	seq  int64
	name trace.Sym
	in   int64 // elements
}

// A named is the group of a collective, nameless if it is ambiguous, and the start of the collective.
type named struct {
	head
	created trace.Time
}

// lockstep is the largest distance, in ns, between the starts of a collective on different ranks, when it is
// only identified by its number, as the ranks disagree about the rest. Groups differ in their numbers and in
// the times of their hangs.
const lockstep = trace.Time(1e9)

// numbered identifies any collective with a number.
func numbered(seq int64) caught { return caught{seq: seq, in: recorder.Unknown} }

// isFirst reports whether a group seems to have the ranks of the job from rank 0 on: this rank has the same
// number in both.
func (w *watched) isFirst(member int32) bool { return member >= 0 && member == w.dump.Rank }

// namesIn adds the groups of the timed-out collectives of this rank.
func (w *watched) namesIn(known map[caught]named) {
	for i := range w.dump.Ops {
		op := &w.dump.Ops[i]
		if op.Group < 0 {
			continue
		}
		if g := &w.dump.Groups[op.Group]; w.isFirst(g.Member) {
			for _, of := range [...]caught{{op.Seq, op.Name, op.In.Elements}, numbered(op.Seq)} {
				if h, ok := known[of]; ok && h.guid != g.Name {
					known[of] = named{}
				} else if !ok {
					known[of] = named{head{id: g.ID, guid: g.Name, desc: g.Desc, member: w.dump.Rank}, op.Created}
				}
			}
		}
	}
}

// finish assigns groups to the collectives of this rank whose lines name none: the group that other ranks name for
// the same collective; else, without its ID, the group of a collective with the same number that began there at the
// same time; else a nameless group.
func (w *watched) finish(known map[caught]named, names *trace.Symbols) *recorder.FlightDump {
	for i := range w.dump.Ops {
		if op := &w.dump.Ops[i]; op.Group < 0 {
			h := known[caught{op.Seq, op.Name, op.In.Elements}].head
			if of := known[numbered(op.Seq)]; h.guid == "" && max(of.created-op.Created, op.Created-of.created) <= lockstep {
				h = of.head
				h.id = recorder.Unknown // only the number is equal
			}
			if h.guid == "" || !w.isFirst(w.member) {
				h = head{id: recorder.Unknown}
			}
			if h.member = recorder.Unknown; h.guid != "" {
				h.member = w.member
			}
			op.Group = w.group(h)
		}
	}
	for i := range w.dump.Ops {
		if op := &w.dump.Ops[i]; w.dump.Groups[op.Group].Name != recorder.Nameless {
			g := &w.dump.Groups[op.Group]
			g.Size = max(g.Size, membersOf(names.Name(op.Name), op.In.Elements, op.Out.Elements))
		}
	}
	byTime := func(a, b recorder.Op) int { return cmp.Compare(a.Created, b.Created) }
	slices.SortStableFunc(w.dump.Ops, byTime) // the watchdog reports them in another order
	for i := range w.dump.Ops {
		w.dump.Ops[i].Record = int64(i)
	}
	return w.dump
}

// membersOf returns the number of ranks of a collective in which each rank contributes or receives an equal
// part; recorder.Unknown for others.
func membersOf(name string, in, out int64) int32 {
	if strings.Contains(name, "reduce_scatter") {
		in, out = out, in
	} else if name != "all_gather" && name != "_all_gather_base" {
		return recorder.Unknown
	}
	const most = 1 << 20
	if in <= 0 || out <= in || out%in != 0 || out/in > most {
		return recorder.Unknown
	}
	return int32(out / in)
}

// desync parses a line of a report of TORCH_NCCL_DESYNC_DEBUG: "[0, 2] finished collective #77, but didn't join
// collective #78 (count from 1)", or "[1, 3] joined but didn't finish collective #78 (count from 1)".
func (r *CollectiveReader) desync(b []byte) bool {
	var enqueued, completed int64
	if n, ok := number(b, "] finished collective #"); ok {
		enqueued, completed = n, n
	} else if n, ok := number(b, "] joined but didn't finish collective #"); ok {
		enqueued, completed = n, n-1
	} else {
		return false
	}
	inner := token(b, "[", "]")
	h := r.last
	if h.desc != "" && h.desc != "default_pg" || h.desc == "" && h.guid != "" && h.guid != "0" {
		return true // the ranks are those in a group, whose ranks in the job are unknown
	}
	for part := range bytes.SplitSeq(inner, []byte(",")) {
		n, ok := leading(bytes.TrimSpace(part))
		if !ok || n < 0 || n > 1<<20 {
			continue
		}
		w := r.watchedRank(int32(n))
		h.member = int32(n)
		g := &w.dump.Groups[w.group(h)]
		if enqueued > g.Enqueued {
			g.Enqueued, g.Completed, g.Counted = enqueued, completed, true
		}
	}
	return true
}

// Unheaded parses a line without a head, as in reports of several lines.
func (r *CollectiveReader) Unheaded(b []byte) bool {
	return bytes.Contains(b, []byte("collective #")) && r.desync(b)
}

// LastWords parses the C++ runtime's message about the timeout that ended a rank, "what():  [PG 3 Rank 5] ..
// [Rank 5] Watchdog caught ..".
func (r *CollectiveReader) LastWords(b []byte, at trace.Time) bool {
	const begins = "[Rank "
	i := bytes.LastIndex(b, []byte(begins))
	if i < 0 || !bytes.Contains(b[i:], []byte("Watchdog caught collective operation timeout: ")) {
		return false
	}
	rank, ok := leading(b[i+len(begins):])
	return ok && rank >= 0 && rank < 1<<20 && r.Watchdog(b[i:], int32(rank), at)
}
