// Package rank compares the scheduler ranks of a deployment, using only what requests record: how load is divided,
// which rank is late in steps, how pipeline stages are used, and which server takes longer for equal work.
package rank
