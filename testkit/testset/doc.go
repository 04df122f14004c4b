// Package testset makes sets of requests and profiles for tests: from shared dumps, from spans written by hand, from
// simulated runs, from random rows. It renders the tables of reports, but imports no report, so that the tests of every
// report can use it.
package testset
