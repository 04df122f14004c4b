// Package drawing draws requests and ranks as a [trace.Trace]: tracks by process, by
// rank and by request, lanes that never overlap, arrows from slice to slice. It reads
// the tables of the model and decides nothing about ranks or clocks.
package drawing
