// Package nsysexport says what an export of Nsight Systems means in the words of
// package profile. What the file says, package rows reads.
//
// [ReadProfiles] holds an export: one profile for each process, with its rows,
// ranges, kernels and collectives (profile*.go), and what the file knows about the
// process (known.go). [NewStream] walks over the same events without holding them,
// for reports (stream.go, stacks.go). [Outline] returns the processes without their events, and
// [Inventory] what is in the file, for inspect. [Format] offers all of that to whoever
// opens inputs.
package nsysexport
