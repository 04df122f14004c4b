package perfetto

import "google.golang.org/protobuf/encoding/protowire"

// Attributes returns the attributes of the trace with the given head, as far as they are
// in it: [Write] puts them in front of all events.
func Attributes(head []byte) map[string]string {
	attributes := map[string]string{}
	eachMessage(head, tracePacket, func(packet []byte) {
		eachMessage(packet, packetAttributes, func(all []byte) {
			eachMessage(all, attributesAttribute, func(attribute []byte) {
				var key, value string
				eachMessage(attribute, attributeKey, func(b []byte) { key = string(b) })
				eachMessage(attribute, attributeStringValue, func(b []byte) { value = string(b) })
				attributes[key] = value
			})
		})
	})
	return attributes
}

// eachMessage calls f for the fields of a number that are messages or strings, until the
// bytes end or make no sense.
func eachMessage(b []byte, number protowire.Number, f func(content []byte)) {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return
		}
		value := protowire.ConsumeFieldValue(n, kind, b[size:])
		if value < 0 {
			return
		}
		if n == number && kind == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(b[size:])
			f(content)
		}
		b = b[size+value:]
	}
}
