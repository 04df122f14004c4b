package assembly

import (
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/spantable"
)

// gatewayServices are the services whose spans are a gateway's own: the model
// gateway of SGLang (sgl-model-gateway 0.3) and its successors keep the name. What a client saw of a
// request is around it like one.
var gatewayServices = []string{"smg", "aiperf"}

func isGateway(service string) bool { return slices.Contains(gatewayServices, service) }

// gatewayStatus reads the HTTP status that a gateway answered with; 0 is
// unknown.
func (b *builder) gatewayStatus(i int) int64 {
	a, ok := b.dump.Args.Find(b.Rows[i].Args, b.keys.httpStatus)
	if !ok {
		return 0
	}
	n, _ := argInt(a)
	return n
}

// gatewayID returns the id that a gateway gave a request, "" if its span tells none.
func (b *builder) gatewayID(i int) string {
	id, _ := b.dump.Args.Find(b.Rows[i].Args, b.keys.gatewayRequest)
	return string(id.Bytes())
}

// findGatewaysOfHeadless gives parts without a root the gateway's span of their trace, if there
// is only one: what was in flight on a server that died is the request that the gateway has.
func (b *builder) findGatewaysOfHeadless() {
	if !slices.ContainsFunc(b.Parts, func(p request.Part) bool { return p.Root == request.None }) {
		return
	}
	var rows []int // one for each thread of a part without a root
	const none, several = -1, -2
	spans := map[spantable.TraceID]int{} // of gateways, by the traces of these
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

// insideGateway reports whether the span i of a gateway lies in another one of its own.
func (b *builder) insideGateway(i int) bool {
	p := b.tree.Parent(i)
	return p != request.None && b.Rows[p].Kind == request.Gateway
}

// addRejected makes parts of the outermost gateway spans that no server worked
// for: what a gateway answers by itself while all servers are down is what one
// wants to see of an outage. Calls that fetch something (health, models) are not
// requests unless they failed.
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
