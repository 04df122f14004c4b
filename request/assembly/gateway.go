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
	const several = -2
	spans := map[spantable.TraceID]int{} // of gateways, by trace
	for _, row := range b.gateways {
		i := int(row)
		if b.insideGateway(i) {
			continue
		}
		id := b.dump.TraceOf(i)
		if _, there := spans[id]; there {
			i = several
		}
		spans[id] = i
	}
	of := func(i int) {
		part := &b.Parts[b.Rows[i].Part]
		if part.Root != request.None {
			return
		}
		if span, there := spans[b.dump.TraceOf(i)]; there && span != several {
			part.Gateway = span
		}
	}
	for t := range b.AllThreads() {
		if row := b.Threads[t].Row; row != request.None {
			of(row)
		} else if stages := b.StagesOf(t); len(stages) > 0 {
			of(int(stages[0]))
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
