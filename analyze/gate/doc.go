// Package gate lets a script stop where captures or findings are bad. A [Condition] is what
// 'sgtrace diff --fail-if' takes ("ttft.p99>+10%"), and [Conditions.Judge] judges it for two
// captures; [Alarms] are what 'sgtrace report --fail-on' takes: kinds of findings, and a goodput
// that is too small.
//
// A condition holds only if chance is ruled out: the probability that any of the conditions
// of a run holds by chance is at most [level]. A condition that the captures are too short to
// judge does not pass either: a gate that opens when nothing was measured is useless. Its reason
// says what is missing.
package gate
