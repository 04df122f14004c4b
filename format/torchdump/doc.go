// Package torchdump reads what a process of PyTorch dumps of itself: the collectives of its
// [FlightRecorder], and the memory of its devices ([MemorySnapshot]). Both are pickles.
package torchdump
