package assembly

import (
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/spantable"
)

// gatewayServices are the services whose spans are treated as a gateway's. SGLang's model gateway
// (sgl-model-gateway 0.3) and its successors share a name. Spans of what a client saw surround a request
// like a gateway's.
var gatewayServices = []string{"smg", "aiperf"}

func isGateway(service string) bool { return slices.Contains(gatewayServices, service) }

// gatewayStatus returns the HTTP status that a gateway answered with; 0 is unknown.
func (b *builder) gatewayStatus(i int) int64 {
	a, ok := b.dump.Args.Find(b.Rows[i].Args, b.keys.httpStatus)
	if !ok {
		return 0
	}
	n, _ := argInt(a)
	return n
}

// gatewayID returns the ID that a gateway assigned to a request, "" if its span has none.
func (b *builder) gatewayID(i int) string {
	id, _ := b.dump.Args.Find(b.Rows[i].Args, b.keys.gatewayRequest)
	return string(id.Bytes())
}

// findGatewaysOfHeadless assigns the gateway span of their trace to parts without a root, if there is only
// one: work in flight on a server that died belongs to the gateway's request.
func (b *builder) findGatewaysOfHeadless() {
	if !slices.ContainsFunc(b.Parts, func(p request.Part) bool { return p.Root == request.None }) {
		return
	}
	var rows []int // one per thread of a part without a root
	const none, several = -1, -2
	spans := map[spantable.TraceID]int{} // gateway spans by trace, for the traces of rows
	for t := range b.AllThreads() {
		row := b.Threads[t].Row
		if stages := b.StagesOf(t); row == request.None && len(stages) > 0 {
			row = int(stages[0])
		}
		if row != request.None && b.Parts[b.Rows[row].Part].Root == request.None {
			rows = append(rows, row)
			spans[b.dump.TraceOf(row)] = none
		}
	}
	for _, row := range b.gateways {
		i := int(row)
		id := b.dump.TraceOf(i)
		before, wanted := spans[id]
		if !wanted || b.insideGateway(i) {
			continue
		}
		if before != none {
			i = several
		}
		spans[id] = i
	}
	for _, row := range rows {
		if span := spans[b.dump.TraceOf(row)]; span >= 0 {
			b.Parts[b.Rows[row].Part].Gateway = span
		}
	}
}

// insideGateway reports whether gateway span i is inside another gateway span.
func (b *builder) insideGateway(i int) bool {
	p := b.tree.Parent(i)
	return p != request.None && b.Rows[p].Kind == request.Gateway
}

// addRejected makes parts from the outermost gateway spans that no server worked on: what a gateway answers
// on its own while all servers are down is exactly what one looks for in an outage. Calls that fetch
// something (health, models) are not requests unless they failed.
func (b *builder) addRejected() {
	if len(b.gateways) == 0 {
		return
	}
	served := memory.Make[bool](len(b.Rows))
	for p := range b.AllParts() {
		if g := b.Parts[p].Gateway; g != request.None {
			served[g] = true
		}
	}
	texts := b.KeepTexts()
	defer texts.Release()
	for _, row := range b.gateways {
		i := int(row)
		if served[i] || b.insideGateway(i) {
			continue
		}
		args := b.Rows[i].Args
		method, _ := b.dump.Args.Find(args, b.keys.method)
		if string(method.Bytes()) != "POST" && b.gatewayStatus(i) < 400 {
			continue
		}
		part := b.readPart(i, request.Router, texts)
		part.Gateway, part.RID = i, texts.Keep([]byte(b.gatewayID(i)))
		b.Rows[i].Part = int32(len(b.Parts))
		b.Parts = memory.Append(b.Parts, part)
	}
}
