// Package nccllog reads logs of programs that print what NCCL and PyTorch's ProcessGroupNCCL say: with
// NCCL_DEBUG=INFO, which collectives ranks entered last in which communicator (NCCL_DEBUG_SUBSYS=COLL);
// and what PyTorch's watchdog says when one times out. The log of a server has the same lines among its own:
// package serverlog reads these. What lines look like is in package flight/printed.
//
// # What is odd
//
//   - NCCL's INFO lines have no time; its WARN lines have a local one.
//   - NCCL_DEBUG_FILE writes one file a process, otherwise all ranks are in one.
//   - Lines of the watchdog have a local time without a year.
package nccllog
