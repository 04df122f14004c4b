// Package load measures what went on over time: arrivals, requests running and queued,
// tokens, latencies, in buckets of time, for the whole deployment, every role and every
// rank. Package change searches change points in it, and package rank compares ranks by
// it. docs/METRICS.md defines the numbers.
//
// Other reports over time use it, too, to divide time into buckets ([Grid]), to add up how long something lasted
// in each ([Area]), and to draw curves as text ([Block]).
package load
