// Package convert turns inputs into one timeline and writes it.
//
//  1. Expand and Open find the inputs, undo compression and recognise the
//     format by content; [Formats] is the one list of what can be read.
//  2. [Load] reads them into a request.Set.
//  3. [Layout] draws the set as tracks: by thread (host, process, lanes) and by
//     request.
//     A [Merge] does both for inputs of all kinds: [Read], Align, Layout.
//  4. [Create] and Output.Write choose the output format by name and make the
//     file appear whole or not at all.
package convert
