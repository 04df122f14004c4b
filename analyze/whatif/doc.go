// Package whatif predicts how latencies would have been without a problem, or with a different setting: it replays
// the recorded run (package replay) with a change, and compares the latencies.
//
// [fixes] is the table of problems that can be removed, for findings of some kinds, and [Settings] the table of
// settings that can be changed. [New] checks whether the run can be replayed at all: a replay that does not reproduce
// the recording predicts nothing.
package whatif
