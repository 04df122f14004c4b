package errortext

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/format/logline"
)

// FailedSlice reads why RDMA failed: the device's reason follows the last colon, and is from verbs' fixed list.
func FailedSlice(b []byte) string {
	text := "an RDMA transfer failed"
	if nic := device(logline.Behind(b, "local_nic: ")); nic != "" {
		text = "an RDMA transfer over " + nic + " failed"
	}
	const longest = 60
	if i := bytes.LastIndex(b, []byte("): ")); i >= 0 {
		why := bytes.TrimSpace(b[i+len("): "):])
		if len(why) <= longest && bytes.Trim(bytes.ToLower(why), "abcdefghijklmnopqrstuvwxyz -") != nil {
			return text
		}
		text += ": " + string(why)
	}
	return text
}

// InactiveDevice reads which device Mooncake has stopped using, "local RNIC 10.0.0.1:16077@mlx5_9".
func InactiveDevice(b []byte) string {
	if i := bytes.LastIndexByte(b, '@'); i >= 0 {
		if nic := device(b[i+1:]); nic != "" {
			return "the RDMA device " + nic + " had too many errors and is used no longer"
		}
	}
	return "an RDMA device had too many errors and is used no longer"
}

// AsyncEvent reads an asynchronous event of an RDMA device, "Worker: Received context async event local access violation
// work queue error for context mlx5_bond_0", from verbs' fixed list. Events other than errors report a change of a port or
// its clients.
func AsyncEvent(b []byte) string {
	what, nic, _ := bytes.Cut(logline.Behind(b, "context async event "), []byte(" for context "))
	if len(what) > 60 || !bytes.Contains(what, []byte("error")) && !bytes.Contains(what, []byte("fatal")) {
		return ""
	}
	text := "an RDMA device"
	if name := device(nic); name != "" {
		text = "RDMA device " + name
	}
	return text + " reports: " + string(what)
}

// device returns the name of a device at the beginning of b, "mlx5_9".
func device(b []byte) string { return logline.Beginning(b, "_", 40) }

// FailedSession reads "Session 10.0.0.1:15867 failed.".
func FailedSession(b []byte) string {
	if rest, ok := bytes.CutPrefix(b, []byte("Session ")); ok {
		if to, ok := bytes.CutSuffix(rest, []byte(" failed.")); ok && len(to) < 60 && bytes.IndexByte(to, ' ') < 0 {
			return "the session of transfers to " + string(to) + " failed"
		}
	}
	return ""
}

// SlowTransfer returns that a Mooncake transfer timed out, and after how long if the line has it.
func SlowTransfer(b []byte) string {
	if ns, ok := logline.After(b, "timeout after "); ok {
		return fmt.Sprintf("a Mooncake transfer timed out after %.0f s", ns/1e9)
	}
	return "a Mooncake transfer timed out"
}

// UnfinishedTransfers returns that transfers of Mooncake did not finish in time, and the time if the line has it.
func UnfinishedTransfers(b []byte) string {
	if s, ok := logline.After(b, "transfers after "); ok {
		return fmt.Sprintf("Mooncake transfers were not done after %g s", s)
	}
	return "Mooncake transfers were not done in time"
}

// FailedTCP reads that Mooncake could not send over TCP, which it uses without RDMA: a bad address is memory that the
// kernel cannot read, such as that of a device.
func FailedTCP(b []byte) string {
	switch {
	case bytes.Contains(b, []byte("Bad address")):
		return "sending over TCP failed: the kernel cannot read the memory, as it is with that of a device"
	case bytes.Contains(b, []byte("Connection refused")):
		return "sending over TCP failed: nothing takes connections at the other side"
	case bytes.Contains(b, []byte("Cannot assign requested address")):
		return "sending over TCP failed: its host has no port left to connect from"
	}
	what := "sending over TCP failed"
	if bytes.Contains(b, []byte("readBody")) {
		what = "receiving over TCP failed"
	}
	if bytes.Contains(b, []byte("End of file")) || bytes.Contains(b, []byte("Connection reset")) || bytes.Contains(b, []byte("Broken pipe")) {
		what += ": the other side closed the connection"
	}
	return what
}

// Unconnected reads to which host there is no connection, "Failed to connect to target: 10.0.0.1:25389, status: 103900":
// each rank has a port of its own.
func Unconnected(b []byte) string {
	if host, _, _ := strings.Cut(logline.Beginning(logline.Behind(b, "target: "), ".:-_", 60), ":"); host != "" {
		return "cannot connect to " + host + " for a transfer"
	}
	return "cannot connect to the other side of a transfer"
}

// UnknownSegment reads for which host Mooncake's metadata server has no memory segment, "name 10.0.0.1_58f33e4e-..".
func UnknownSegment(b []byte) string {
	host, _, _ := strings.Cut(logline.Beginning(logline.Behind(b, "descriptor, name "), ".:-_", 60), "_")
	return "no memory of " + host + " takes transfers, says Mooncake's metadata server: has it ended, or does it use another one?"
}
