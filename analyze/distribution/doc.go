// Package distribution computes exact percentiles in little memory, and the sums,
// medians and lines that reports share.
//
// Percentiles are nearest rank: the value at rank ceil(p*n) of the sorted values, one
// that occurred. Nothing is interpolated.
//
//   - [Summary] and [Summarize] are for values that are in memory anyway.
//   - A [Sample] holds 4 bytes a value and hands out a [Distribution]; beyond a limit it
//     becomes a histogram, and says that it is approximate.
//   - Sums never overflow: they stop at the largest int64.
//
// Times are in ns throughout.
package distribution
