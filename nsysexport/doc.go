// Package nsysexport says what an export of Nsight Systems means in the words of
// package profile. What the file says, package rows reads.
//
// There is one file for each kind of table (work.go, calls.go, ranges.go, samples.go, counters.go),
// which has a walk over its rows as what they mean. [NewStream] passes that to reports (walk.go).
// readProfiles holds it, to be drawn: one profile for each process, with its rows,
// ranges, kernels and collectives (profile.go, reader.go, join.go), and what the file knows about the
// process (known.go). [Outline] returns the processes without their events, and
// [Inventory] what is in the file, for inspect. [Format] offers all of that to whoever
// opens inputs.
package nsysexport
