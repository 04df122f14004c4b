// Package nsys writes, for a part of a run of the simulator, what Nsight Systems would have exported for each host: a
// SQLite file in one of four schema generations.
//
// Package torch makes up the inside of the steps, so that both profilers saw the same. host.go translates the layouts of a
// host's schedulers to the clock of the host, system.go adds what only Nsight Systems sees, piece.go divides a recording
// that was made in pieces, and write*.go write the tables. tally.go counts the content of a file.
//
// # Tables
//
// db.go writes SQLite files with the tables that nsys export makes. It knows which tables and columns each generation of
// the schema has (tables.go), but not their content:
//
//	db, err := nsys.Create("node0.sqlite", nsys.Schema2024)
//	db.Insert("CUPTI_ACTIVITY_KIND_KERNEL", "start", 17, "shortName", nsys.ID("gemm"))
//	err = db.Close()
//
// Writes to tables and columns that a generation does not have are ignored, so that one program writes all generations. As
// in nsys, a table is created when it gets its first row. The same calls give the same bytes.
package nsys
