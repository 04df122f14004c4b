// Package curves draws numbers over time as text: blocks of lines, each line a curve over
// the same buckets, with its lowest and highest value.
package curves
