// Package torchdump reads dumps of PyTorch's processes: the collectives of a [FlightRecorder] and the
// memory of devices ([MemorySnapshot]), which are pickles; where threads stand ([PySpy]); and what NCCL
// writes about collectives: a [Log], and the records of an [Inspector].
package torchdump
