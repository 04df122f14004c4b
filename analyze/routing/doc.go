// Package routing says how evenly the tokens of a model with experts are spread over GPUs: which rank
// and which experts get more than their share, how long others wait for them, and how much of that is
// chance. Where profiles are beside it, it says whether the kernels of experts agree.
package routing
