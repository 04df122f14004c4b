package serverlog

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/format/serverlog/errortext"
	"github.com/sgtrace/sgtrace/series"
)

// A transferring is a request whose KV cache did not arrive, from the first line about it.
type transferring struct {
	x    series.Instant
	what string // the failed part
	told bool   // the reason is known
}

// ofTransfer is in a line of [failedTransfer], which custom loggers print without a stamp.
var ofTransfer = []byte(" failed for request rank=")

// failedTransfer returns a reader of the reason for the failure of a transfer on a server with a role. Every TP rank
// reports each request, but often only one knows the reason: a room counts once, with the reason.
func failedTransfer(role, what string) func(*reader, []byte, *series.Instant) string {
	return func(r *reader, b []byte, x *series.Instant) string {
		r.roleIs(x.Place, role)
		if bytes.Contains(b, []byte("Aborted by AbortReq")) {
			x.Kind = series.ClientGone
		}
		reason := transferReason(b)
		room := what + roomOf(b)
		before, known := r.rooms[room]
		const most = 1 << 16
		switch {
		case known && before.told:
			return ""
		case reason == "" && !known && room != what && len(r.rooms) < most:
			r.rooms[room] = transferring{*x, what, false} // until a rank has the reason, or the log ends
			return ""
		case reason == "" && known:
			return ""
		case room != what && (known || len(r.rooms) < most):
			r.rooms[room] = transferring{told: true}
		}
		switch {
		case x.Kind == series.ClientGone:
			return series.AbortedWaiting + waitingFor[what]
		case reason == "":
			return what + unexplained
		}
		return what + " failed: " + reason
	}
}

// waitingFor is what a request waits for during a phase of its transfer.
var waitingFor = map[string]string{"a bootstrap": "to be told where its KV cache goes", "sending the KV cache": "for its KV cache to be sent", "a handshake": "for its KV cache", "receiving the KV cache": "for its KV cache"}

// unexplained is the text for a transfer without a reason from any rank.
const unexplained = " failed, and the line does not say why"

// givenUp returns a reader of the advice that a server with a role prints after requests that it gave up.
func givenUp(role, why string) func(*reader, []byte, *series.Instant) string {
	return func(r *reader, _ []byte, x *series.Instant) string {
		if r.roleIs(x.Place, role); r.advised.says == "" {
			x.Place = r.unranked()
			r.advised = advice{*x, "requests " + why}
		}
		return ""
	}
}

// An advice is the first advice in the log.
type advice struct {
	x    series.Instant
	says string
}

// explain adds the transfers that failed without a reason, and those that only appear in an advice.
func (r *reader) explain() {
	if r.advised.says != "" && len(r.rooms) == 0 && !r.lost {
		r.f.Instant(r.advised.x, r.advised.says)
	}
	for _, room := range slices.Sorted(maps.Keys(r.rooms)) {
		if t := r.rooms[room]; !t.told {
			r.f.Instant(t.x, t.what+unexplained)
		}
	}
}

// roomOf returns the bootstrap room in a line; "" if there is none.
func roomOf(b []byte) string {
	room := logline.Behind(b, "bootstrap_room=")
	return string(room[:len(room)-len(bytes.TrimLeft(room, "0123456789"))])
}

// transferReason returns the reason for a failed transfer, as far as a line has it.
func transferReason(b []byte) string {
	switch {
	case bytes.Contains(b, []byte("Aborted by AbortReq")):
		return "aborted"
	case bytes.Contains(b, []byte("Failed to get kvcache from prefill instance")):
		return "the prefill server may be dead"
	case bytes.Contains(b, []byte("Decode instance could be dead")):
		return "the decode server may be dead"
	case bytes.Contains(b, []byte("Losing connection with prefill instance")):
		return "the connection to the prefill server was lost"
	case bytes.Contains(b, []byte("Failed to send kv chunk")):
		return "a part of it could not be sent"
	case bytes.Contains(b, []byte(" timed out after ")):
		reason := "it timed out"
		if s, ok := logline.After(b, "timed out after "); ok {
			reason = fmt.Sprintf("it timed out after %g s", s)
		}
		if i := bytes.Index(b, []byte("KVPoll.")); i >= 0 {
			reason += " in " + logline.Word(b[i+len("KVPoll."):])
		}
		return reason
	case bytes.Contains(b, []byte("from another rank")):
		return ""
	}
	why := logline.Behind(b, " with exception ") // of the server's own code, which sees no text
	if _, said, ok := bytes.Cut(why, []byte("): ")); ok && bytes.HasPrefix(why, []byte("KVTransferError(")) {
		why = said
	}
	return strings.TrimRight(logline.Message(why), ". ")
}

// unreachable reads that a decode server cannot reach the bootstrap server of a prefill server.
func (r *reader) unreachable(b []byte, x *series.Instant) string {
	r.roleIs(x.Place, "decode")
	text := series.Untold
	if why := errortext.Reason(b, "from bootstrap"); why != "" {
		text += ": " + why
	}
	return text
}

// failedNIXL reads "NIXL transfer failure: handshake_setup_failed | Context: ..". The exception is printed after it, and
// the process continues.
func (r *reader) failedNIXL(b []byte, x *series.Instant) string {
	r.survives.process, r.survives.at = r.process, x.Time
	return "a NIXL transfer failed: " + strings.ReplaceAll(logline.Beginning(logline.Behind(b, "failure: "), "_", 40), "_", " ")
}

// unfetched reads "Releasing expired KV blocks for request R which were retrieved by 0 decode worker(s) within 120
// seconds.", which a prefill server of vLLM writes.
func unfetched(r *reader, b []byte, x *series.Instant) string {
	r.roleIs(x.Place, "prefill")
	workers, ok := logline.After(b, "retrieved by ")
	s, timed := logline.After(b, "within ")
	switch {
	case !ok || !timed:
		return "a KV cache was not fetched in time, and is lost"
	case workers > 0:
		return fmt.Sprintf("only %.0f decode workers fetched a KV cache within %g s: it is lost", workers, s)
	}
	return fmt.Sprintf("no decode server fetched a KV cache within %g s: it is lost", s)
}
