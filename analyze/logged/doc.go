// Package logged tells what servers say of themselves over time, in logs and metrics: how many
// requests run and wait by rank, how full the KV cache is, what is retracted, what fails, and
// since when. docs/METRICS.md defines the numbers.
package logged
