// Package whatif tells what would have happened without something, or with something else: it
// plays the recorded run again (package replay) with a change, and compares the latencies.
//
// [fixes] is the table of what can be taken away, for findings of some kinds, and [Settings]
// the table of what can be set. [New] checks that the run can be played at all: what does not
// come out as recorded must not be asked.
package whatif
