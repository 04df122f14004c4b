package cause

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A layer is a kind of stretch of a request's time. Stretches overlap, such as the halves of a request on the prefill and
// on the decode server. The highest layer has the time: what is nearer to the first token is what holds the request up.
type layer uint8

const (
	layerNone        layer = iota
	layerOutside           // the whole request: the gateway's span, if there is one
	layerSiblings          // servers work on other requests of the call
	layerRoute             // stages of a router, which continue while it waits for servers
	layerInside            // a server's request span
	layerKVWait            // wait for the KV cache: the prefill half says more
	layerPrefillSide       // the same wait, if the dump lacks the prefill half
	layerOther             // unknown stages
	layerIntake
	layerDispatch
	layerEncode
	layerPrefillBootstrap
	layerTransfer
	layerDecodeBootstrap // nothing is sent until the decode server has room
	layerQueue
	layerPrefill
	layerChunkWait
	layerSlowRank
	layerDecodeQueue
	layerDecode
	layerCount
)

// layerCauses are the causes of the layers before the first token; and after it, if single steps
// are unknown, or after the last one. By then the server is answering, whatever else is still open.
var layerCauses = [layerCount]struct{ before, after Cause }{
	layerNone:             {Unaccounted, Return},
	layerOutside:          {Router, Router},
	layerSiblings:         {Siblings, Siblings},
	layerRoute:            {Router, Router},
	layerInside:           {Unaccounted, Return},
	layerKVWait:           {Transfer, Return},
	layerPrefillSide:      {PrefillSide, Return},
	layerOther:            {Other, Return},
	layerIntake:           {Intake, Return},
	layerDispatch:         {Dispatch, Return},
	layerEncode:           {Encode, Return},
	layerPrefillBootstrap: {PrefillBootstrap, Return},
	layerDecodeBootstrap:  {DecodeBootstrap, Return},
	layerTransfer:         {Transfer, Return},
	layerQueue:            {Queue, Return},
	layerPrefill:          {Prefill, Return},
	layerChunkWait:        {ChunkWait, Return},
	layerSlowRank:         {SlowRank, Return},
	layerDecodeQueue:      {DecodeQueue, DecodeQueue},
	layerDecode:           {FirstStep, Decode},
}

var phaseLayers = [...]layer{
	request.OtherPhase:     layerOther,
	request.RoutePhase:     layerRoute,
	request.DispatchPhase:  layerDispatch,
	request.QueuePhase:     layerQueue,
	request.BootstrapPhase: layerDecodeBootstrap,
	request.PrefillPhase:   layerPrefill,
	request.TransferPhase:  layerTransfer,
	request.DecodePhase:    layerDecode,
}

// layerOf returns the layer of a stage: by its meaning, or else by its phase.
func layerOf(row *request.Row) layer {
	switch row.Means {
	case request.Receiving:
		return layerKVWait
	case request.DecodeQueueing:
		return layerDecodeQueue
	case request.Encoding:
		return layerEncode
	case request.SendPreparing, request.SendConnecting:
		return layerPrefillBootstrap
	case request.Launching, request.Caching: // these run beside the request without holding it up
		return layerNone
	}
	return phaseLayers[row.Phase]
}

// A canvas holds the stretches of a request within a window of time.
type canvas struct {
	from, to trace.Time
	edges    []layerEdge
}

// A layerEdge is where a stretch begins (step 1) or ends (-1).
type layerEdge struct {
	at    trace.Time
	layer layer
	step  int8
}

// reset empties the canvas.
func (c *canvas) reset(from, to trace.Time) { c.from, c.to, c.edges = from, to, c.edges[:0] }

// paint adds a stretch, clipped to the window.
func (c *canvas) paint(l layer, from, to trace.Time) {
	from, to = max(from, c.from), min(to, c.to)
	if from < to && l != layerNone {
		c.edges = append(c.edges, layerEdge{from, l, 1}, layerEdge{to, l, -1})
	}
}

// sweep calls f for the pieces of the window in order, each with its highest layer.
func (c *canvas) sweep(f func(l layer, from, to trace.Time)) {
	slices.SortFunc(c.edges, func(x, y layerEdge) int { return cmp.Compare(x.at, y.at) })
	var open [layerCount]int32
	at, next := c.from, 0
	for at < c.to {
		for ; next < len(c.edges) && c.edges[next].at <= at; next++ {
			open[c.edges[next].layer] += int32(c.edges[next].step)
		}
		until := c.to
		if next < len(c.edges) {
			until = c.edges[next].at
		}
		top := layerCount - 1
		for top > layerNone && open[top] == 0 {
			top--
		}
		f(top, at, until)
		at = until
	}
}
