package main

import (
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/selection"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/assembly"
)

// pick returns what chooses the requests that are read of large dumps, so that sel and byID,
// if it is not nil, can choose from them; nil if they choose by nothing that can be seen
// before reading. asRecorded tells that the window of time is on the clocks of the hosts.
func pick(sel *selection.Chosen, byID request.IDTest, asRecorded bool) *assembly.Pick {
	if byID == nil {
		byID = sel.Selection.ByID()
	}
	if byID != nil || sel.Window != (selection.Window{}) {
		return &assembly.Pick{ByID: byID, Window: sel.Bounds, AsRecorded: asRecorded}
	}
	if n := sel.Selection.OnlySlowest(); n > 0 {
		return &assembly.Pick{Slowest: n, Window: sel.Bounds, AsRecorded: asRecorded}
	}
	return nil
}
