// Package flightrecorder reads what PyTorch's flight recorder dumps when a collective times
// out: the collectives that a rank entered last, as a pickle or as JSON, one file a rank
// (nccl_trace_rank_3, _dump_3).
//
// # What is odd
//
//   - The rank is in the name of the file alone. Where the name has none, it is the one rank
//     that all groups of the process have in common.
//   - A dump of a real hang often has no collective that ended: then pg_status alone tells
//     which the last one was.
//   - pg_status is keyed by pg_id, pg_config by the name of the group. Only entries tell which
//     is which, and a process that stands still before a collective has none.
//   - ranks of pg_config is text: "[0, 1]".
//   - time_discovered_started_ns and time_discovered_completed_ns are when a thread looked.
//   - Version 1 has seq_id, or id, for collective_seq_id, and may be the bare list of entries.
//   - Pickles name no classes. One that does is refused.
package flightrecorder
