// Package nsysexport interprets an export of Nsight Systems in terms of package profile. Package rows reads the
// file itself.
//
// There is one file for each kind of table (work.go, calls.go, ranges.go, samples.go, counters.go), with a walk
// over its rows that passes each one in terms of package profile. [NewStream] offers these walks to reports
// (walk.go). For drawing, readProfiles collects everything into one profile per process, with its rows, ranges,
// kernels, and collectives (profile.go, reader.go, join.go), and the facts about the process (known.go).
// [Outline] returns the processes without their events, and [Inventory] lists the content of the file, for
// inspect. [Format] offers all of that to the code that opens inputs.
package nsysexport
