// Package verify reads an output back and compares it with the [trace.Trace] that
// it was written from.
//
// It shares no code with the writers, and it does not sum up: it walks over file
// and model in step. The next slice of a track in the file must be the next one of
// that track in the model, with its name, category, times and arguments; likewise
// instants, samples, arrows, tracks and the description of the whole. So counts, sums
// of durations and nesting are equal if nothing differs, and the first difference
// is known by its place.
//
// Files are read in one pass. Memory is that of one event, of the strings that the
// file interns, and of four bytes per arrow and symbol.
//
// Damage that changes nothing that a viewer shows, such as white space in JSON, need
// not be noticed. All else is an error, and so is a packet or member that the
// writers do not write.
package verify
