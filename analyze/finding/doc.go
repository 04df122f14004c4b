// Package finding defines what reports tell an engineer without being asked. A [Finding] records what stands out,
// where, since when, by how much, and what it costs, with its evidence. Several finders may find the same thing;
// [Merge] makes one finding of it. A [Check] says what was looked at, and whether there was enough data for a verdict.
package finding
