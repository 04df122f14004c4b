// Package recorder has tables for data of recorders within a process: the collectives in flight ([InFlight]),
// the device memory of allocators ([Memory]), and the tokens of each expert of a model ([Experts]).
//
//   - InFlight is a picture of one moment, for hangs. It is filled from flight recorders of PyTorch, the output
//     of PyTorch's watchdog, NCCL, and py-spy, and NCCL's Inspector. Collectives recorded by profilers over
//     time are in package profile.
//   - Memory has the blocks at the moment of a snapshot, and the allocations and frees before it. Memory that
//     bypasses the allocator is not included: NCCL, NVSHMEM, custom all-reduce, and contexts take some of the
//     device.
//   - Experts are counted by forward pass, layer, and expert, as by expert distribution recorders.
package recorder
