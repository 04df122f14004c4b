// Package logline reads the lines that any log may have, whoever wrote it: what collectors put
// around lines (Kubernetes, docker, Ray, systemd), stamps of several kinds, the heads of lines of
// PyTorch's C++ code, and what is said of collectives that hang, by PyTorch's ProcessGroupNCCL and
// its watchdog, by NCCL with NCCL_DEBUG=INFO, and in dumps of py-spy. The latter fills [recorder.InFlight]
// with a dump for each process.
//
// # What is odd
//
//   - "[rank9]:" in front of a line of PyTorch is the rank in the job, "Rank 1]" behind a group the rank in
//     that group. Until 2.1, only the latter is told.
//   - The line that tells of a time-out does not name its group; the next one of that rank does, by the same number.
//   - PyTorch counts a collective as enqueued once the call of NCCL came back: a rank that hangs in that
//     call looks as if it had not entered the collective.
//   - "from rank 3" is who reported first, and not who is to blame.
//   - NCCL's lines have no time. A line is written when a call is enqueued; a CUDA graph writes lines when it is
//     captured, and none when it is replayed.
//   - "[dev]" of NCCL is the device of the thread that calls, not that of the communicator. The line that begins a communicator tells its rank.
//   - opCount stays 0 where no proxy is needed, on one node: lines are counted instead.
//   - A communicator's address is used again after it was destroyed. Only commId joins ranks; one that was split off
//     has none, and is known by its parent, the count of splits, and its color.
//   - Lines of ranks that share a file are glued to what others write.
package logline
