// Package pickle reads pickles of Python, protocols 0 to 5, as written by Python and PyTorch. It reads them as
// values, not as programs. A pickle may name classes and functions; nothing is imported and nothing is called.
// Instead, the reader gets an object with the name, the arguments, and the state, and has to know the class.
//
// # Large pickles
//
// A memory snapshot is a list of millions of dicts in a pickle of gigabytes. [Options.Take] gets each dict when
// it is complete. A dict that it takes is dropped, and the list that would contain it counts it
// ([Value.Taken]). Values that the pickle may refer to later have to be kept anyway, which may be all of them:
// [Scan] finds the references in a pass of its own that decodes nothing, so that only referenced values are
// kept.
//
// # Hostile pickles
//
// No opcode allocates more than the bytes it has, containers refer to each other and are never copied, and
// nothing recurses. The memory in use is counted, and limited by [Options.Limit]. A value can contain itself: a
// reader should descend only as many levels as its format has.
package pickle
