package logline

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// A comm identifies a communicator in a file.
type comm struct {
	host, pid, at string
}

// A joined is a process's membership in a communicator, and the collectives that it entered.
type joined struct {
	host   string
	pid    int64
	at     string // its address
	device int32  // in CUDA's numbering, or recorder.Unknown
	key    string
	group  recorder.Group
	global int32 // rank in the job, from RCCL, or recorder.Unknown
	n      int64 // number of collectives; ring has the last ones
	ring   []recorder.Op
	began  bool // whether it is set up, as far as known
}

// maxKept is the number of collectives that are kept of a communicator: the last ones.
const maxKept = 1024

var (
	infoOf = []byte("NCCL INFO ")
	warnOf = []byte("NCCL WARN ")
)

// NCCL parses a line of NCCL, "host:pid:tid [dev] NCCL INFO ..", wherever it begins in b, and reports whether
// there is one. It also returns the text of a warning.
func (r *CollectiveReader) NCCL(b []byte) (warning []byte, ok bool) {
	i := bytes.Index(b, infoOf)
	if i < 0 {
		if i = bytes.Index(b, warnOf); i < 0 {
			return nil, false
		}
		return b[i+len(warnOf):], true
	}
	front, message := b[:i], b[i+len(infoOf):]
	switch {
	case bytes.Contains(message[:min(len(message), 60)], opCount):
		r.collective(front, message)
	case bytes.Contains(message, []byte("comm 0x")) && bytes.Contains(message, []byte(" nranks ")):
		r.communicator(front, message)
	}
	return nil, true
}

// processBefore parses "host:pid:tid [dev] " in front of a message.
func processBefore(b []byte) (host, pid string) {
	b = bytes.TrimRight(b, " ")
	if i := bytes.LastIndexByte(b, ' '); i >= 0 && bytes.HasSuffix(b, []byte("]")) { // the device
		b = bytes.TrimRight(b[:i], " ")
	}
	b = b[bytes.LastIndexByte(b, ' ')+1:]
	k := bytes.LastIndexByte(b, ':')
	if k < 0 {
		return "", ""
	}
	b = b[:k]
	if k = bytes.LastIndexByte(b, ':'); k < 0 {
		return "", ""
	}
	return string(b[:k]), string(b[k+1:])
}

// Names of NCCL's types, by their numbers.
var typeNames = []string{"int8", "uint8", "int32", "uint32", "int64", "uint64", "fp16", "fp32", "fp64", "bf16", "fp8_e4m3", "fp8_e5m2"}

// reductions are those of NCCL by number; a sum is not mentioned.
var reductions = []string{"", "product", "max", "min", "average"}

// rooted are the collectives with a root, and the preposition after their names.
var rooted = map[string]string{"Broadcast": "from", "Bcast": "from", "Reduce": "to", "Gather": "to", "Scatter": "from"}

// A callLine is a line about a collective.
type callLine struct {
	name, comm                 []byte
	count, typ, op, root, size int64
	global                     int64
}

var opCount = []byte(": opCount ")

// callOf parses "AllReduce: opCount 139d sendbuff 0x7.. recvbuff 0x7.. count 7382228 datatype 7 op 0 root 0
// comm 0x78cf.. [nranks=128] stream 0x78d0..", after which RCCL writes "task 0 globalrank 170".
func callOf(b []byte) (c callLine, ok bool) {
	name, rest, _ := bytes.Cut(b, opCount)
	c = callLine{name: name, count: -1, typ: -1, op: -1, root: -1, size: -1, global: -1}
	_, rest, _ = bytes.Cut(rest, []byte(" ")) // skip the count itself
	for len(rest) > 0 {
		var key, value []byte
		key, rest, _ = bytes.Cut(rest, []byte(" "))
		if bytes.HasPrefix(key, []byte("[nranks=")) {
			c.size, _ = leading(key[len("[nranks="):])
			continue
		}
		value, rest, _ = bytes.Cut(rest, []byte(" "))
		switch string(key) {
		case "count":
			c.count, _ = leading(value)
		case "datatype":
			c.typ, _ = leading(value)
		case "op":
			c.op, _ = leading(value)
		case "root":
			c.root, _ = leading(value)
		case "comm":
			c.comm = value
		case "globalrank":
			c.global, _ = leading(value)
		}
	}
	return c, c.count >= 0 && c.typ >= 0 && c.op >= 0 && c.root >= 0 && c.size > 0 && c.size < 1<<24 && len(c.comm) > 2 && len(name) <= 40
}

// collective reads a line about a collective; front is the text before it.
func (r *CollectiveReader) collective(front, b []byte) {
	c, ok := callOf(b)
	if !ok {
		return
	}
	r.key = append(append(r.key[:0], front...), c.comm...)
	j := r.called[string(r.key)]
	if j == nil {
		host, pid := processBefore(front)
		j = r.comm(comm{host, pid, string(c.comm)})
		const most = 1 << 14
		if len(r.called) < most {
			r.called[string(r.key)] = j
		}
	}
	if j.group.Size = int32(c.size); c.global >= 0 && c.global < 1<<24 {
		j.global = int32(c.global)
	}
	x := recorder.Op{P2P: recorder.Unknown, Src: recorder.Unknown, Dst: recorder.Unknown, Stack: recorder.Unknown,
		In: recorder.Shape{Text: r.counted(c.count), Elements: c.count}, InT: r.typeOf(c.typ), Name: r.nameOf(&c)}
	j.n++
	r.entered++
	x.Seq, x.Record = j.n, r.entered
	if string(c.name) == "Send" || string(c.name) == "Recv" {
		return // pairs in a group come in any order
	}
	if len(j.ring) < maxKept {
		j.ring = append(j.ring, x)
	} else {
		j.ring[(j.n-1)%maxKept] = x
	}
}

// A callName distinguishes calls of one size.
type callName struct {
	name     string
	op, root int64
}

// nameOf names a call with everything else that must be equal on all ranks: its root, and its reduction.
func (r *CollectiveReader) nameOf(c *callLine) trace.Sym {
	if sym, ok := r.ops[callName{string(c.name), c.op, c.root}]; ok {
		return sym
	}
	text := string(c.name)
	if c.op > 0 && c.op < int64(len(reductions)) && (text == "AllReduce" || text == "Reduce" || text == "ReduceScatter") {
		text += " by " + reductions[c.op]
	}
	if to, ok := rooted[string(c.name)]; ok {
		text += fmt.Sprintf(" %s %d", to, c.root)
	}
	sym := r.names.Intern([]byte(text))
	r.ops[callName{string(c.name), c.op, c.root}] = sym
	return sym
}

// counted returns a number of elements as text.
func (r *CollectiveReader) counted(n int64) trace.Sym {
	sym, ok := r.sizes[n]
	if !ok {
		sym = r.names.Intern(append(strconv.AppendInt(nil, n, 10), " elements"...))
		const most = 1 << 14
		if len(r.sizes) < most {
			r.sizes[n] = sym
		}
	}
	return sym
}

// typeOf returns the name of a type.
func (r *CollectiveReader) typeOf(n int64) trace.Sym {
	if n >= 0 && n < int64(len(typeNames)) {
		return r.names.Intern([]byte(typeNames[n]))
	}
	return r.names.Intern(strconv.AppendInt([]byte("type "), n, 10))
}

// comm returns a communicator, adding it if it is new.
func (r *CollectiveReader) comm(c comm) *joined {
	j := r.comms[c]
	if j == nil {
		j = r.glued(c)
	}
	if j == nil {
		pid, _ := strconv.ParseInt(c.pid, 10, 64)
		j = &joined{host: c.host, pid: pid, at: c.at, device: recorder.Unknown, global: recorder.Unknown, group: recorder.NewGroup("", "")}
		r.comms[c] = j
		r.order = append(r.order, j)
	}
	return j
}

// glued returns the communicator of a line that follows a fragment of another line: what looks like its host
// ends in the host. It returns nil if there is none.
func (r *CollectiveReader) glued(c comm) *joined {
	for id, j := range r.comms {
		if id.at == c.at && id.pid == c.pid && id.host != "" && len(c.host) > len(id.host) && strings.HasSuffix(c.host, id.host) {
			return j
		}
	}
	return nil
}

// communicator parses the life of a communicator: "ncclCommInitRankConfig comm 0x5.. rank 3 nranks 8 cudaDev 3
// nvmlDev 3 busId 3e000 commId 0x81dc.. - Init START", "ncclCommSplit comm .. parent 0x.. splitCount 1 color 2
// key 0- Init START", "comm 0x5.. rank 3 nranks 8 cudaDev 3 busId 3e000 - Destroy COMPLETE".
func (r *CollectiveReader) communicator(front, b []byte) {
	clear(r.called)
	host, pid := processBefore(front)
	id := comm{host, pid, string(token(b, "comm ", " "))}
	rank, ok1 := number(b, " rank ")
	size, ok2 := number(b, " nranks ")
	if !ok1 || !ok2 || rank < 0 || size <= rank || size > 1<<24 {
		return
	}
	begins := bytes.Contains(b, []byte("Init START"))
	if old := r.comms[id]; old != nil && begins && old.began && (old.group.Ended || old.group.Aborted || old.n > 0) {
		delete(r.comms, id) // its address is reused
	}
	j := r.comm(id)
	j.group.Member, j.group.Size = int32(rank), int32(size)
	if dev, ok := number(b, " cudaDev "); ok && dev >= 0 && dev < 1<<16 {
		j.device = int32(dev)
	}
	switch {
	case bytes.Contains(b, []byte("Destroy COMPLETE")):
		j.group.Ended = true
		return
	case bytes.Contains(b, []byte("Abort COMPLETE")):
		j.group.Aborted = true
		return
	case begins:
		j.began = true
	}
	if commID := token(b, " commId ", " "); len(commID) > 0 {
		j.key = string(commID)
		j.group.Desc = "communicator " + j.key
		return
	}
	parent := r.comms[comm{host, pid, string(token(b, " parent ", " "))}]
	n, ok := number(b, " splitCount ")
	color, ok3 := number(b, " color ")
	if parent == nil || !ok || !ok3 || j.key != "" {
		return
	}
	j.key = fmt.Sprintf("%s/%d/%d", parent.key, n, color)
	j.group.Desc = "communicator " + j.key
}

// endNCCL adds a dump for each device of a process. Its rank in the job is that in its largest communicator.
func (r *CollectiveReader) endNCCL() {
	type device struct {
		host string
		pid  int64
		dev  int32
	}
	var of order.Groups[device, []*joined]
	for _, j := range r.order {
		if j.key == "" && j.group.Member < 0 && j.n == 0 {
			continue
		}
		order.Add(&of, device{j.host, j.pid, j.device}, j)
	}
	for i, all := range of.List {
		slices.SortStableFunc(all, byMost)
		rank := all[0].group.Member
		if i := slices.IndexFunc(all, func(j *joined) bool { return j.global >= 0 }); i >= 0 {
			rank = all[i].global
		}
		d := r.dump(recorder.NCCL, rank)
		d.Host, d.PID = of.Keys[i].host, of.Keys[i].pid
		for _, j := range all {
			j.add(d)
		}
		slices.SortFunc(d.Ops, func(a, b recorder.Op) int { return cmp.Compare(a.Record, b.Record) })
		r.set.Add(d)
	}
}

// add adds a communicator to a dump.
func (j *joined) add(d *recorder.FlightDump) {
	g := j.group
	if g.Name = j.key; g.Name == "" { // the ranks that share it are unknown
		g.Name = fmt.Sprintf("%s:%d %s", j.host, j.pid, j.at)
		g.Desc = "communicator at " + j.at
	}
	g.Counted = true
	if j.n > 0 {
		g.Enqueued = j.n
	}
	for i := range j.ring {
		op := j.ring[(int(j.n)+i)%len(j.ring)] // oldest first, once it is full
		op.Group = int32(len(d.Groups))
		d.Ops = append(d.Ops, op)
	}
	d.Groups = append(d.Groups, g)
}
