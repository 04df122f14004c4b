// Package allocations says what took the memory of devices, from snapshots of PyTorch's allocator: what is allocated
// now, what was allocated at the peak, what grew, and which calls for more memory of the device held up a thread.
package allocations
