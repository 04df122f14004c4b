// Package rows reads the output of `nsys export` for a report of NVIDIA Nsight Systems, with
// --type sqlite or parquetdir. It only passes on the content of the tables; package nsysexport interprets it
// in terms of package profile.
//
// [Open] returns a [Source], whose methods pass the rows of one table each to a
// function. How rows are read:
//
//  1. Package storage reads tables from SQLite, or from a folder of Parquet files.
//     Here both are a storage.Store.
//  2. The schema is what the store has, never what a version number promises
//     (schema.go). Tables exist only if something was recorded, and columns
//     come and go, in the middle too. A missing column has the default value in
//     its spec (kernels.go, calls.go, ...).
//  3. Tables are scanned in the order of the store (scan.go), each by a connection
//     of its own, so that several are read at once. Names are numbers in the store
//     and looked up on first use (strings.go), never joined by SQL,
//     which would take twice the time.
//
// Damage loses the rows on the affected pages, which are counted, and is a data loss. It does not affect other tables.
// Of a truncated file, all rows before the cut are read. Values have no checksums:
// a changed one is read as it is.
//
// Exports hold environment variables, command lines and the content of files.
// Only tables, columns, and keys on an allow-list are read, and strings are
// looked up only for these columns, so that nothing else can reach a result.
//
// All tables are scanned by the same cursor and share names and the schema, which is why
// they are in one package of some size.
//
// Times are nanoseconds. In the file they count from the start of the session;
// here they are absolute, see [Meta.Absolute].
//
// # What is odd
//
//   - A missing table means that nothing was recorded. Columns come and go, also
//     in the middle (greenContextId): we choose them by name, and trust no
//     version number.
//   - Times count from the start of the session. utcEpochNs says when that was,
//     and does not move with --ts-shift and --ts-normalize, which move
//     everything else; EXPORT_CONFIG_TIME_SHIFT has the sum of both. Exports
//     from before 2022 may not have the start at all.
//   - An interrupted export has a first page of zeros, because nsys writes that
//     page last; SQLite only says that the file is not a database. The other
//     pages are whole: we find tables by the intact part of the list of tables,
//     or by the shape of their rows.
//   - With --type parquetdir, every table is a Parquet file of the same name and
//     columns, in a folder. All numbers are 64 bits wide, except for a few.
//   - Counters of network cards have no names, but the number of a list and
//     a place in it (TARGET_INFO_NETWORK_METRICS), and NIC_ID_MAP identifies the
//     card. --lazy=false writes every table, most of them empty.
//   - A journal, or a -wal file with rows, next to the file means that it was not
//     closed. Its content would be wrong without them, so we refuse it.
//   - Correlation IDs count within a process. One launch of a CUDA graph has all
//     of its kernels (--cuda-graph-trace=node), or none (graph, the default):
//     then only CUPTI_ACTIVITY_KIND_GRAPH_TRACE says when it ran, and zeros
//     there mean unknown.
//   - Up to schema 3.7, CUDA_GRAPH_EVENTS is the table of nodes; later, a table
//     of graphs has that name.
//   - A range that was never closed is exported with the end of the session. It
//     is marked, and left out of statistics.
//   - NVTX text is in the row, or, if the program registered it, in StringIds.
//     IDs of domains and categories count within a process. Large unsigned
//     payloads come as negative numbers.
//   - NCCL's payloads, which have the ranks, are exported only with
//     --include-json=true or --include-blobs=true; some versions write binary
//     payloads as hexadecimal text.
//   - deviceId counts as the process does: CUDA_VISIBLE_DEVICES renumbers GPUs.
//     From schema 3.17 on, TARGET_INFO_CUDA_DEVICE says which is which.
//   - Thread IDs are packed: 8 bits of hardware, 8 of a virtual machine, 24 of
//     the pid, 24 of the tid; stored as signed numbers.
//   - PROCESSES names a process twice: first nsys-launcher, then the program.
//   - Names of calls contain the version of their signature, cudaLaunchKernel_v7000. Like
//     nsys stats, we drop it only if it is the last six characters.
//   - In metadata, UNKNOWN stands for what nsys could not find out.
//   - Warnings and errors of the profiler itself (lost data, missing
//     permissions) are rows of DIAGNOSTIC_EVENT. We pass them on.
//   - Most samples have the innermost function only: nsys takes the whole stack
//     of every fourth (--samples-per-backtrace). A stack that could not be
//     followed to its end begins with "[Broken backtraces]". Functions without a
//     name are called by their address; we call all of a module
//     "[libcuda.so.1]".
//   - SAMPLING_PERIOD is in CPU cycles or in nanoseconds, by what triggers
//     samples. We measure the period instead.
//   - SCHED_EVENTS has the times at which a thread gets or loses a core; on Linux its
//     threadState does not say why.
//   - Tools add tables and columns of their own. We don't read them; inspect
//     lists them.
package rows
