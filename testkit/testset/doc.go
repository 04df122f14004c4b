// Package testset makes sets of requests and profiles for tests: of shared dumps, of
// spans written by hand, of simulated runs, of random rows. It renders the tables of
// reports, but imports no report, so that the tests of every report can use it.
package testset
