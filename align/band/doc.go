// Package band finds the line of an offset of two clocks between limits from below and
// above, as requests that cross hosts give them, some of which may be wrong.
package band
