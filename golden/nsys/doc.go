// Package nsys writes, for a part of a run of the simulator, what Nsight Systems
// would have exported for each host: an SQLite file of four schema generations,
// whose columns are in package nsysdb.
//
// What happened inside of the steps is laid out by package torch, so that both
// profilers saw the same. host.go translates the layouts of a host's schedulers to
// the clock of the host, system.go adds what only Nsight Systems sees, piece.go
// divides a recording that was made in pieces, and write*.go write the tables.
// tally.go counts what is in a file.
package nsys
