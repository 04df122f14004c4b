// Package curves divides time into buckets, adds up what lasted how long in each, and draws numbers
// over them as text: blocks of lines, each line a curve over the same buckets, with its lowest and
// highest value.
package curves
