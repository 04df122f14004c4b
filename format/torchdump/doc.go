// Package torchdump reads what is dumped of a process of PyTorch: the collectives of its
// [FlightRecorder] and the memory of its devices ([MemorySnapshot]), as pickles, where its
// threads stand ([PySpy]), and what its NCCL writes of collectives: a [Log], and the records of
// an [Inspector].
package torchdump
