// Package rocpd reads the SQLite databases that rocprofv3 writes since ROCm 7.0 and rocprof-sys
// beside it, one for each process, and what 'rocpd merge' makes of several.
//
// # What is odd
//
//   - Tables have the UUID of the recording behind their name ("rocpd_string_00006409_00d1_..."),
//     and some writers leave out the "_" or the whole; of a merged file, several have one each.
//     Plain names are views, which are not read: theirs are inner joins, so that one missing
//     thread hides the kernels that it launched.
//   - Ids count anew for each guid. No table has an index, so that each is read once and joined
//     here.
//   - A kernel and the call that launched it have the same stack_id. correlation_id is what the
//     application pushed, often 0.
//   - The text of a roctx range is in extdata of its event; its name is that of the function.
//   - The columns environment and command hold credentials. Of the first, three variables are
//     looked up; the second is never read.
//   - uuid of an agent is the number of its model, equal for all GPUs of a host.
//   - Python's multiprocessing workers may leave files that have strings and a node only.
//   - Values of streaming counters (sample_id is not NULL) are left out.
package rocpd
