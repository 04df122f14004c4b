// Package routing measures how evenly the tokens of a model with experts are spread over GPUs: which ranks and
// experts get more than their share, how long other GPUs wait for them, and how much of that is chance. With profiles
// of the same server, it checks whether the times of expert kernels agree.
package routing
