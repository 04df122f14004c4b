// Package memorysnapshot reads the snapshots of memory that PyTorch writes
// (torch.cuda.memory._dump_snapshot; SGLang's activity MEM): pickles of what its allocator has of
// each device, and of what it did before.
//
// # What is odd
//
//   - Entries say how much was asked for, blocks also how much they take.
//   - The list of entries is a ring: the newest are in it, SGLang's holds 100,000. Blocks are always complete.
//     Entries may be missing altogether, where nobody switched recording on.
//   - Entries are on the clock of PyTorch's profiler, in microseconds of Unix time. PyTorch before
//     2.2 has no times.
//   - PyTorch 2.0 has blocks without addresses, whose sizes are in a list history.
//   - An entry of an allocation that failed has what the device had left in the place of an address.
//   - A segment is stamped behind the call that made it: what lies before the stamp, up to the
//     entry before, is an upper bound of what the call took.
//   - Frames are shared between entries. Those of C++ have no file.
package memorysnapshot
