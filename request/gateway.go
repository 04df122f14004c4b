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
