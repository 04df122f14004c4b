// Package convert turns inputs into one timeline and writes it.
//
//  1. Expand and Find find the inputs, Open takes off their envelopes and recognises the
//     format by content; [Formats] is the one list of what can be read.
//  2. [Index] reads them: all that decides who is who and how clocks relate, and what of
//     the events cannot be read later.
//  3. [Read] decides which recording is of which rank, and which two profilers made of
//     one process; Align puts all on one clock.
//  4. Then the events are passed once: [Layout] and [Merge.Layout] draw them as tracks, by
//     thread, by request, by rank; [Merge.Evidence] lets reports walk over them. A window
//     of time is read by ReadWindow.
//  5. [Create] and Output.Write choose the output format by name and make the
//     file appear whole or not at all.
package convert
