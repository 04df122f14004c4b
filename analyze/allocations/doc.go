// Package allocations says what took the memory of devices, by the snapshots that PyTorch's allocator
// leaves: what there is, what there was at the peak, what grew, and which calls for more memory of
// the device held up a thread.
package allocations
