package perfetto

import (
	"regexp"

	"google.golang.org/protobuf/encoding/protowire"
)

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
