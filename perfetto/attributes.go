package perfetto

import (
	"regexp"

	"google.golang.org/protobuf/encoding/protowire"
)

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

// Sniff reports whether a file with the given head may be a Perfetto trace: it begins with
// a whole packet, which has fields and nothing else.
func Sniff(head []byte) bool {
	num, kind, n := protowire.ConsumeTag(head)
	if n < 0 || num != tracePacket || kind != protowire.BytesType {
		return false
	}
	packet, n := protowire.ConsumeBytes(head[n:])
	if n < 0 || len(packet) == 0 {
		return false
	}
	for len(packet) > 0 {
		_, _, n := protowire.ConsumeField(packet)
		if n < 0 {
			return false
		}
		packet = packet[n:]
	}
	return true
}

// IsOwn reports whether this program wrote the Perfetto trace with the given head: the
// attributes of the trace, near its beginning, tell.
func IsOwn(head []byte) bool {
	return Sniff(head) && ownAttribute.Match(head)
}

// ownAttribute is the key of an attribute as protobuf has it, with its tag and length.
var ownAttribute = regexp.MustCompile(`\x0a[\x08-\x7f]sgtrace\.`)
