// Package torchdump reads dumps of PyTorch's processes: the collectives of a [FlightRecorder] and the memory of devices
// ([MemorySnapshot]), which are pickles; the stacks of threads ([PySpy]); and NCCL's output about collectives: a [Log], and
// the records of an [Inspector].
package torchdump
