// Package gpuloss says what GPUs lose time to, as findings: idle time and its reasons, the start of
// a process, communication and copies that nothing hides, steps without CUDA graphs, kernels of
// one block, calls that failed. It measures nothing: package gpu did.
package gpuloss
