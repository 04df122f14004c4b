// Package load measures what went on over time: arrivals, requests running and queued,
// tokens, latencies, in buckets of time, for the whole deployment, every role and every
// rank. Package change searches change points in it, and package rank compares ranks by
// it. docs/METRICS.md defines the numbers.
//
// What divides time into buckets ([Grid]), adds up what lasted how long in each ([Area]), and
// draws curves over them as text ([Block]) serves other reports over time, too.
package load
