package request

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/similar"
)

// IDKind is a kind of ID.
type IDKind uint8

const (
	RequestID IDKind = iota // rid, full ID, or gateway ID
	RoomID                  // bootstrap room
	TraceID
)

// An IDTest reports whether a request with this ID, among others, may be one that is wanted.
type IDTest func(kind IDKind, id string) bool

// ByID returns a test that is true for some ID of each request that sel selects, and for few others; nil if
// no ID matters. All conditions of sel must hold, so testing one of them is enough.
func (sel *Selection) ByID() IDTest {
	switch {
	case len(sel.RIDs) > 0:
		return func(kind IDKind, id string) bool {
			id = requestID(kind, id)
			return slices.ContainsFunc(sel.RIDs, func(want string) bool { return id != "" && strings.HasPrefix(id, want) })
		}
	case len(sel.Rooms) > 0:
		return func(kind IDKind, id string) bool {
			room := RoomText(id)
			return kind == RoomID && slices.ContainsFunc(sel.Rooms, func(want string) bool { return room == RoomText(want) })
		}
	case len(sel.Traces) > 0:
		return func(kind IDKind, id string) bool { return kind == TraceID && isTrace(id, sel.Traces) }
	case sel.Sample > 0:
		return func(kind IDKind, id string) bool {
			id = requestID(kind, id)
			return id != "" && sampled(id, sel.Sample)
		}
	}
	return nil
}

// Beginning returns a test for requests with an ID of any kind that begins with want.
func Beginning(want string) IDTest {
	return func(kind IDKind, id string) bool {
		return strings.HasPrefix(id, want) || strings.HasPrefix(requestID(kind, id), want) || kind == RoomID && strings.HasPrefix(RoomText(id), want)
	}
}

// requestID returns the request ID that an ID of some kind stands for; "" if none. A request without any
// other ID is named after its trace.
func requestID(kind IDKind, id string) string {
	switch kind {
	case RequestID:
		return id
	case TraceID:
		return TraceRID(id)
	}
	return ""
}

// TraceRID returns the stand-in request ID for a request that has only a trace ID.
func TraceRID(id string) string { return "trace:" + id }

// isTrace reports whether a trace ID is one of traces, which may lack leading zeros.
func isTrace(text string, traces []string) bool {
	return slices.ContainsFunc(traces, func(want string) bool {
		return text == strings.Repeat("0", max(0, len(text)-len(want)))+strings.ToLower(want)
	})
}

// Similar suggests the ID closest to one that no request has, or the beginning of one: "; did you mean
// 7ca07386?". It is empty if none is close enough for a typo: IDs are random, and some of thousands are
// similar by chance.
func (s *Set) Similar(id string) string {
	const lettersPerSlip = 6
	best, least := "", max(1, len(id)/lettersPerSlip)+1
	for i := range s.AllRequests() {
		for _, have := range s.IDs(&s.Requests[i]) {
			have = have[:min(len(have), len(id))]
			if d := similar.Distance(id, have); d < least {
				best, least = have, d
			}
		}
	}
	if best == "" || len(id) < lettersPerSlip {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// IsRoom reports whether text is a bootstrap room.
func IsRoom(text string) bool { return RoomText(text) != "" }

// RoomText normalizes a bootstrap room, in decimal or hex, to "0x" and hex digits; "" if it is not a room,
// or 0.
func RoomText(text string) string {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		text = "0x" + strconv.FormatUint(n, 16)
	}
	text = strings.ToLower(text)
	if !strings.HasPrefix(text, "0x") || strings.Trim(text[2:], "0") == "" {
		return ""
	}
	return text
}
