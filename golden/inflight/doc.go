// Package inflight simulates ranks that enter collectives one after another, one of which goes
// wrong, and writes what PyTorch's flight recorder would dump of them.
//
// A rank enters what its program has, up to some collectives ahead of the first that has not
// ended. A collective ends when all ranks of its group are in it with the same operation. So
// one mistake stops its group, and then all ranks that share a group with one of those, as in
// reality. The truth is the mistake.
package inflight
