package nsys

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/golden/torch"
)

// nvtxRange is an NVTX range of the main thread.
type nvtxRange struct {
	interval   // never closed if it ends at the end of time
	text       string
	registered bool  // the text is in StringIds
	domain     int64 // 0 is the default one
	id         int64 // of a started and ended range; 0 if it is pushed and popped
	step       bool
	payload    payload
}

const neverClosed = math.MaxInt64

// payload is NCCL's description of a call; its layout is 0 if there is none.
type payload struct {
	layout              int
	comm, bytes         uint64
	ranks, rank, device int
}

// begin adds the events before the first step: communicators are set up, and ranges are opened that are never closed.
func (p *process) begin() {
	h := p.host
	if p.comm != 0 {
		at := h.from + 5*ms + int64(p.capture.TP)*30*us
		p.ranges = append(p.ranges, nvtxRange{
			interval: interval{at, at + 30*ms}, text: "ncclCommInitRank", registered: true, domain: ncclDomainID,
			payload: payload{ncclInitID, p.comm, 0, p.capture.Group.Size.TP, p.capture.TP, p.device()},
		})
	}
	for i := range h.config.OpenRanges {
		r := nvtxRange{interval: interval{h.from + 40*ms + int64(i)*us, neverClosed}}
		// A range that is pushed and not popped is open around everything that follows.
		if r.text = "warmup"; i%2 == 0 {
			r.text, r.id = "kv_cache.offload", int64(i/2+1)
		}
		p.ranges = append(p.ranges, r)
	}
}

// annotate adds the ranges of a step, and returns the index of the one around its calls, -1 if there is none.
func (p *process) annotate(s *torch.Pass) int {
	if s.Picked != 0 {
		p.push("scheduler.get_next_batch_to_run", s.Picking, s.Picked)
	}
	p.push("scheduler.run_batch", s.Rank.Scheduled+100, s.Rank.Computed)
	step := -1
	if s.End != 0 {
		step = len(p.ranges)
		p.push(s.StepName(), s.Begin, s.End)
		p.ranges[step].step = true
		p.layers(s.Calls)
		p.collectives(s)
	}
	if s.Settled != 0 {
		p.push("scheduler.process_batch_result", s.Rank.Computed+100, s.Settled)
	}
	return step
}

func (p *process) push(text string, start, end int64) {
	p.ranges = append(p.ranges, nvtxRange{interval: p.interval(start, end), text: text})
}

// layers puts a range around the calls of each layer.
func (p *process) layers(calls []torch.Call) {
	for i := 0; i < len(calls); {
		n := 1
		for i+n < len(calls) && calls[i+n].Layer == calls[i].Layer {
			n++
		}
		if calls[i].Layer >= 0 {
			p.push(fmt.Sprintf("model.layers.%d", calls[i].Layer), calls[i].Start, calls[i+n-1].End)
		}
		i += n
	}
}

// collectives adds the ranges of NCCL, which are only around launches. A graph was captured earlier.
func (p *process) collectives(s *torch.Pass) {
	for i := range s.Calls {
		k := &s.Calls[i]
		if k.Seq == 0 {
			continue
		}
		r := nvtxRange{
			interval: p.interval(k.At(torch.PartLaunch), k.At(torch.PartNCCLEnd)), text: "ncclAllReduce", registered: true, domain: ncclDomainID,
			payload: payload{layout: ncclSizeID, comm: p.comm, bytes: uint64(s.Step.Tokens * torch.HiddenSize * 2)},
		}
		if k.Op == torch.OpAllGather {
			r.text, r.payload.bytes = "ncclAllGather", uint64(s.Step.Requests*torch.Vocabulary/p.capture.Group.Size.TP*4)
		}
		p.ranges = append(p.ranges, r)
	}
}

// json returns the payload as nsys export writes it with --include-json.
func (p *payload) json() string {
	if p.layout == ncclInitID {
		return fmt.Sprintf(`{"NCCL communicator ID": %d, "No. of ranks": %d, "Rank": %d, "CUDA device": %d}`, p.comm, p.ranks, p.rank, p.device)
	}
	return fmt.Sprintf(`{"NCCL communicator ID": %d, "Message size [bytes]": %d}`, p.comm, p.bytes)
}

// binary returns the payload as nsys export writes it with --include-blobs.
func (p *payload) binary() []byte {
	var body []byte
	word := binary.LittleEndian
	body = word.AppendUint64(body, p.comm)
	if p.layout == ncclInitID {
		body = word.AppendUint32(body, uint32(p.ranks))
		body = word.AppendUint32(body, uint32(p.rank))
		body = word.AppendUint64(body, uint64(p.device)) // padded
	} else {
		body = word.AppendUint64(body, p.bytes)
	}
	var b []byte
	for _, n := range []int{ncclDomainID, p.layout, len(body), payloadHeading} {
		b = word.AppendUint64(b, uint64(n))
	}
	return append(b, body...)
}

// ranges writes NVTX's events.
func (w *writer) ranges() {
	t := w.db.Table("NVTX_EVENTS")
	w.domains(t)
	for _, o := range inOrder(w.piece, func(p *process) []nvtxRange { return p.ranges }, w.hasRange) {
		r := o.event
		// An open range ends with the session.
		t.Set("start", w.time(r.start), "end", w.time(min(r.end, w.to)), "eventType", eventPushPop)
		if t.Set("rangeId", nil); r.id != 0 {
			t.Set("eventType", eventStartEnd, "rangeId", r.id)
		}
		t.Set("globalTid", GlobalTID(o.process.pid, o.process.pid), "domainId", r.domain, "text", nil, "textId", nil)
		if r.registered {
			t.Set("textId", ID(r.text))
		} else {
			t.Set("text", r.text)
		}
		w.payload(t, r)
		t.Insert()
	}
}

// domains writes the domains, which each process creates for itself, and the layouts of payloads, which each process
// registers again.
func (w *writer) domains(t *Table) {
	for i, p := range w.host.processes {
		if p.comm == 0 {
			continue
		}
		// Libraries are loaded before the session begins.
		t.Insert("start", w.time(w.from-int64(i+1)*ms), "end", nil, "eventType", eventDomain, "text", "NCCL",
			"globalTid", GlobalTID(p.pid, p.pid), "domainId", ncclDomainID)
		if w.host.config.Payloads {
			w.layouts()
		}
	}
}

func (w *writer) layouts() {
	schemas, entries := w.db.Table("NVTX_PAYLOAD_SCHEMAS"), w.db.Table("NVTX_PAYLOAD_SCHEMA_ENTRIES")
	for _, l := range payloadLayouts {
		schemas.Insert("domainId", ncclDomainID, "schemaId", int64(l.id), "type", payloadSimple, "numEntries", int64(len(l.fields)),
			"payloadSize", int64(l.size))
		for i, f := range l.fields {
			entries.Set("domainId", ncclDomainID, "schemaId", int64(l.id), "idx", int64(i), "type", int64(f.kind), "name", f.name)
			if entries.Set("offset", nil); f.offset != 0 {
				entries.Set("offset", int64(f.offset))
			}
			entries.Insert()
		}
	}
}

// tells reports whether the file has the payload of a range.
func (s *piece) tells(r *nvtxRange) bool {
	return s.host.config.Payloads && r.payload.layout != 0 && s.host.config.Schema >= Schema2022
}

// payload sets the payload of a range.
func (w *writer) payload(t *Table, r *nvtxRange) {
	t.Set("jsonText", nil, "binaryData", nil)
	switch {
	case !w.tells(r):
	case w.db.Schema >= Schema2026:
		t.Set("binaryData", r.payload.binary())
	default:
		t.Set("jsonText", r.payload.json())
	}
}
