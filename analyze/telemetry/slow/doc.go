// Package slow finds, in lines of batches and in scrapes, why requests take longer on a server, and since when: it
// has more to do, it reached a limit, its tokens take longer, or less of its work is saved by caches, drafts, or
// graphs.
//
// It is long because it has a finder for each of these, in a file of its own, and they share the same curves: a limit
// counts only if requests wait, and a server is slower only if it takes longer for the same work.
package slow
