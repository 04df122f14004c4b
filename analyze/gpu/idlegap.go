package gpu

import "github.com/sgtrace/sgtrace/trace"

// An IdleGap is a gap of a device, divided by reason.
type IdleGap struct {
	Rank, Device int32
	Gap
	// Late tells that the host was late: during the gap it launched what ended it. Launch is
	// when that call began, and Launched how long it took, in ns.
	Late     bool
	Launch   trace.Time
	Launched int64
	Parts    []GapPart // in order; they add up to the gap
}

// A GapPart is a part of a gap with one reason.
type GapPart struct {
	Gap
	Reason Reason
	// By is the call that is to blame: the one that held the host up, or the one before that
	// let the device run dry. Called tells that there is one.
	By     HostCall
	Called bool
}

// ReasonOf returns the reason that a call of a name is for idle time, [NoReason] for all that
// return at once.
func ReasonOf(call string) Reason { return reasonOfCall(call) }
