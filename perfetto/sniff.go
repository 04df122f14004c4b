package perfetto

import "google.golang.org/protobuf/encoding/protowire"

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
