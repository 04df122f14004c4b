// Package finding defines what reports tell an engineer without being asked: a
// [Finding] says what, where, since when, why and what it costs, with its evidence.
// Several reports may find the same thing; [Merge] makes one finding of it.
package finding
