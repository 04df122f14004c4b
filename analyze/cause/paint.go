package cause

import (
	"slices"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// paintPart paints the spans of a part: its request span, the stages of its lead rank, and those of
// tokenizers, controllers, and transfer workers. The other ranks work in parallel with the lead rank.
func (w *Walk) paintPart(p *placed, answers bool) {
	s := w.set
	prefills := p.part.Role == request.Prefill || p.part.Role == request.Unified
	if p.lead != request.None && answers {
		w.out.Answer = int32(s.Threads[p.lead].Proc)
	}
	if p.part.Root != request.None && (prefills || answers) {
		shift := w.shift(s.ProcOf(p.part.Root)) + p.nudge
		w.canvas.paint(layerInside, p.part.Start+shift, p.part.End+shift)
	}
	var sent trace.Time // end of the first thread to hand the request on
	for _, t := range s.ThreadsOf(p.part) {
		stages := s.StagesOf(t)
		if len(stages) == 0 || t != p.lead && s.OnScheduler(t) {
			continue
		}
		shift := w.shiftOfThread(t) + p.nudge
		for _, i := range stages {
			span := s.Row(int(i))
			w.canvas.paint(w.layerOf(span), span.Start+shift, span.End+shift)
		}
		if end := s.Row(int(stages[len(stages)-1])).End + shift; t != p.lead && p.part.Role != request.Sender && (sent == 0 || end < sent) {
			sent = end
		}
	}
	if p.lead == request.None {
		return
	}
	if stages := s.StagesOf(p.lead); sent != 0 && len(stages) > 0 {
		w.canvas.paint(layerIntake, sent, s.Row(int(stages[0])).Start+w.shiftOfThread(p.lead)+p.nudge)
	}
	if prefills {
		w.out.Prefill = int32(s.Threads[p.lead].Proc)
		w.paintLate(p)
		w.paintChunkWaits(p)
	}
}

// layerOf returns the layer of a stage of the request at hand.
func (w *Walk) layerOf(row *request.Row) layer {
	l := layerOf(row)
	if l == layerKVWait && w.set.Requests[w.out.Request].Flags&request.Unjoined != 0 {
		return layerPrefillSide
	}
	return l
}

// paintLate paints the time in which a prefill step had ended on half of the TP ranks but not on the last one.
func (w *Walk) paintLate(p *placed) {
	w.readPeers(p.lead, request.PrefillingChunk, request.Prefilling)
	shift := w.shiftOfThread(p.lead) + p.nudge
	for k := range w.peers[0].ends {
		iv, last := w.late(int32(k))
		if last == request.None {
			return
		}
		if from, to := iv.From+shift, min(iv.To+shift, w.first); from < to {
			w.canvas.paint(layerSlowRank, from, to)
			w.peers[last].sum += int64(to - from)
		}
	}
	w.noteSlowest()
}

// paintChunkWaits paints the time from the end of a chunk until the batch with the next chunk is
// scheduled, which the stage of that chunk includes, and records whether other requests were in the
// batches. The overlap scheduler schedules a batch before the previous one has ended; then no wait shows.
func (w *Walk) paintChunkWaits(p *placed) {
	s := w.set
	w.chunks, w.times = w.chunks[:0], w.times[:0]
	forward := request.None
	s.EachStage(s.StagesOf(p.lead), func(i int) {
		switch s.Row(i).Means {
		case request.PrefillingChunk:
			w.chunks = append(w.chunks, i)
			w.readPrefillBatches(i)
		case request.Prefilling:
			forward = i
			w.readPrefillBatches(i)
		}
	})
	if len(w.times) == 0 && forward != request.None { // the trace level shows no batches
		load := &w.ranks[s.Threads[p.lead].Proc]
		w.out.Shared = load.beganWithOthers(s.Row(forward).Start)
	}
	if len(w.chunks) < 2 || len(w.times) != len(w.chunks) {
		return // events are missing, or it was prefilled again
	}
	slices.Sort(w.times)
	shift := w.shiftOfThread(p.lead) + p.nudge
	for k, i := range w.chunks[1:] {
		w.canvas.paint(layerChunkWait, s.Row(i).Start+shift, w.times[k+1]+shift)
	}
}

// readPrefillBatches appends the times of the prefill batches scheduled in span i to w.times,
// and records whether other requests were in them.
func (w *Walk) readPrefillBatches(i int) {
	for _, e := range w.set.InstantsOf(i) {
		if size, ok := BatchOf(&e, request.PrefillMode); ok {
			w.times = append(w.times, e.Time)
			w.out.Shared = w.out.Shared || size > 1
		}
	}
}

// BatchOf returns the number of requests in the batch that event e schedules; ok is false if e schedules no batch of the given mode.
func BatchOf(e *request.Instant, mode request.Mode) (size int64, ok bool) {
	return max(0, int64(e.Batch)), e.Kind == request.Scheduled && e.Mode == mode
}
