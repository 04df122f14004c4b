// Package recorder has the tables of what the recorders within a process keep: which collectives
// it has in flight ([InFlight]), what its allocators have of devices ([Memory]), and which expert
// of a model gets how many tokens ([Experts]).
//
//   - InFlight is a picture of one moment, for hangs. Flight recorders of PyTorch fill it, what
//     PyTorch's watchdog, NCCL, and py-spy print, and NCCL's Inspector. What profilers record of
//     collectives over time is in package profile.
//   - Memory has the blocks at the moment of a snapshot, and what was allocated and freed before
//     it. What the allocator does not know is not here: NCCL, NVSHMEM, custom all-reduce, and
//     contexts take memory of the device past it.
//   - Experts are counted by forward pass, layer, and expert, as expert distribution recorders do.
package recorder
