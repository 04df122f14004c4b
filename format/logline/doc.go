// Package logline reads the parts that the lines of any log may have: the prefixes of log collectors
// (Kubernetes, docker, Ray, systemd), stamps of several kinds, the heads of lines of
// PyTorch's C++ code, and reports about hanging collectives from PyTorch's ProcessGroupNCCL and
// its watchdog, from NCCL with NCCL_DEBUG=INFO, and in dumps of py-spy. These reports fill [recorder.InFlight]
// with a dump for each process.
//
// # What is odd
//
//   - "[rank9]:" in front of a line of PyTorch is the rank in the job, "Rank 1]" after a group the rank in
//     that group. Until 2.1, there is only the latter.
//   - The line that reports a timeout does not name its group; the next line of that rank does, with the same number.
//   - PyTorch counts a collective as enqueued once the call of NCCL has returned: a rank that hangs in that
//     call looks as if it had not entered the collective.
//   - "from rank 3" is the rank that reported first, and not the one to blame.
//   - NCCL's lines have no time. A line is written when a call is enqueued; a CUDA graph writes lines when it is
//     captured, and none when it is replayed.
//   - NCCL's "[dev]" is the device of the calling thread, not that of the communicator. The line that creates a communicator has its rank.
//   - opCount stays 0 if no proxy is needed, on one node: we count lines instead.
//   - A communicator's address is reused after it was destroyed. Only commId joins ranks; a communicator that was split off
//     has none, and is identified by its parent, the count of splits, and its color.
//   - Lines of ranks that share a file may be glued together.
package logline
