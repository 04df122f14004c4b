// Package torchdump reads what is dumped of a process of PyTorch: the collectives of its
// [FlightRecorder] and the memory of its devices ([MemorySnapshot]), as pickles, and where its
// threads stand ([PySpy]).
package torchdump
