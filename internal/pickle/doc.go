// Package pickle reads pickles of Python, of protocols 0 to 5, as Python and PyTorch write
// them: as values, not as programs. A pickle may name classes and functions; nothing is
// imported and nothing is called. What it would make is an object that has the name, the
// arguments and the state, for a reader that knows the class.
//
// # Large pickles
//
// A snapshot of memory is a list of millions of dicts in a pickle of gigabytes. [Options.Take]
// gets each dict when it is filled; one that it takes is dropped, and the list that it would
// be in counts it ([Value.Taken]). What the pickle may refer to later is kept all the same, as
// nobody knows what that is: [Scan] finds it in a pass of its own that decodes nothing, and
// then only that is kept.
//
// # Hostile pickles
//
// No opcode makes more than what its bytes hold, containers refer to each other and are never
// copied, and nothing recurses. What is held is counted, and limited by [Options.Limit]. A
// value can contain itself: a reader goes down as many levels as its format has, and no
// further.
package pickle
