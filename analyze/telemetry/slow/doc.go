// Package slow finds, in lines of batches and in scrapes, why requests take longer on a server, and since when: more is
// asked of it, a limit is reached, its tokens take longer, or it is spared less work.
//
// It is long, as it has a finder for each of these, a file each, and they judge by the same curves: a limit counts only where
// requests wait, and a server is slower only for as much work.
package slow
