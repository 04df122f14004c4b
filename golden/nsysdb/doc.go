// Package nsysdb writes SQLite files with the tables that nsys export makes of a
// report of Nsight Systems. It knows which tables and columns each generation of
// the schema has (tables.go), and nothing about what is in them.
//
//	db, err := nsysdb.Create("node0.sqlite", nsysdb.Schema2024)
//	kernels := db.Table("CUPTI_ACTIVITY_KIND_KERNEL")
//	kernels.Int("start", 17)
//	kernels.ID("shortName", "gemm")
//	kernels.Insert()
//	err = db.Close()
//
// Tables and columns that a generation does not have swallow what is written to
// them, so that one program writes all generations. As nsys does, a table is
// created when it gets its first row. The same calls give the same bytes.
package nsysdb
