// Package matching finds the same collective on several ranks, whose clocks need not agree: by
// the ids that producers write, or by the order of calls and the gaps between them.
package matching
