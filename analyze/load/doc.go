// Package load measures load over time: arrivals, requests running and queued, tokens, latencies, in
// buckets of time, for the whole deployment, every role and every rank. Package change searches it for
// change points, and package rank compares ranks by it. docs/METRICS.md defines the numbers.
//
// Other reports over time use it to divide time into buckets ([Grid]), to add up how long something
// lasted in each ([Area]), and to draw curves as text ([Block]).
package load
