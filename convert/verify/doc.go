// Package verify reads an output back and compares it with the [trace.Trace] that it was written from.
//
// It shares no code with the writers, and it does not compare sums: it walks through file and model in
// step. The next slice of a track in the file must be the next one of that track in the model, with its
// name, category, times, and arguments; likewise instants, samples, arrows, tracks, and the trace's
// attributes. So if nothing differs, counts, total durations, and nesting are equal, and the first
// difference is reported with its location.
//
// Files are read in one pass. Memory is needed for one event, the strings that the file interns, and four
// bytes per arrow and symbol.
//
// Damage that changes nothing in a viewer, such as white space in JSON, may go unnoticed. Everything else
// is an error, including packets or members that the writers never write.
package verify
