package request

import "slices"

// gatewayServices are the services whose spans are a gateway's own: the model
// gateway of SGLang (sgl-model-gateway 0.3) and its successors keep the name.
var gatewayServices = []string{"smg"}

func isGateway(service string) bool { return slices.Contains(gatewayServices, service) }

// gatewayStatus reads the HTTP status that a gateway answered with; 0 is
// unknown.
func (b *builder) gatewayStatus(i int) int64 {
	a, ok := b.Dump.Args.Find(b.Dump.Span(i).Args, b.keys.httpStatus)
	if !ok {
		return 0
	}
	n, _ := argInt(a)
	return n
}

// addRejected makes parts of the outermost gateway spans that no server worked
// for: what a gateway answers by itself while all servers are down is what one
// wants to see of an outage. Calls that fetch something (health, models) are not
// requests unless they failed.
func (b *builder) addRejected() {
	served := map[int]bool{}
	for p := range b.Parts {
		served[b.Parts[p].Gateway] = true
	}
	for i := range b.Dump.Len() {
		if b.kinds[i] != Gateway || served[i] {
			continue
		}
		if p := b.Tree.Parent(i); p != None && b.kinds[p] == Gateway {
			continue
		}
		args := b.Dump.Span(i).Args
		method, _ := b.Dump.Args.Find(args, b.keys.method)
		if string(method.Bytes()) != "POST" && b.gatewayStatus(i) < 400 {
			continue
		}
		id, _ := b.Dump.Args.Find(args, b.keys.gatewayRequest)
		b.addPart(i, Router)
		b.kinds[i] = Gateway
		part := &b.Parts[len(b.Parts)-1]
		part.Gateway, part.RID = i, string(id.Bytes())
	}
}
