// Package finding defines what reports tell an engineer without being asked: a
// [Finding] is the record of what stands out, where, since when, by how much and what it
// costs, with its evidence. Several finders may find the same thing; [Merge] makes one
// finding of it. [Check] says what was looked at, and whether there was enough to tell.
package finding
