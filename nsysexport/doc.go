// Package nsysexport reads what `nsys export --type sqlite` writes: the SQLite
// form of a report of NVIDIA Nsight Systems. It does not run nsys, and does not
// read .nsys-rep files.
//
// [Read] turns a file into an [Export] of typed tables. [Open] gives a [Source],
// whose methods pass the rows of one table each to a function, for those who
// need sums and not rows. Both do the same:
//
//  1. The header of the file is checked before SQLite sees it (header.go): what an
//     interrupted export, a copy that was cut short and a database in use look like
//     is known, and is explained better here than by "file is not a database".
//  2. The file is opened read-only and immutable (open.go), so that nothing is
//     written into it or beside it.
//  3. The schema is what the file has, never what a version number promises
//     (schema.go). Tables exist only where something was recorded, and columns
//     come and go, in the middle too. A column that is missing has the value that
//     its row of the column table tells (kernels.go, calls.go, ...).
//  4. Tables are scanned in the order of the file (scan.go), each by a connection
//     of its own, so that several are read at once. Names are numbers in the file
//     and looked up when they are first met (strings.go), never joined by SQL,
//     which would take twice the time.
//
// Damage costs the rows on the pages that it hits, which are counted (pass.go,
// shape.go), and is a data loss. Other tables are read as if nothing had happened. Of
// a file that is cut off, all rows before the cut are read. Values have no checksums:
// one that was changed is read as it is.
//
// Exports hold environment variables, command lines and the content of files.
// What is read is an allow-list of tables, columns and keys, and strings are
// looked up only by the columns in it; so nothing else can reach a result.
//
// Times are nanoseconds. In the file they count from the start of the session;
// here they are absolute, see [Meta.Absolute].
package nsysexport
