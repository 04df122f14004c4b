// Package rank compares the scheduler ranks of a deployment by what requests show: how
// load is divided, which rank ends its steps after its peers, how stages of a pipeline
// are used, and which server takes longer for equal work.
package rank
