// Package slow finds, in lines of batches and in scrapes, why requests take longer on a server, and since when: more is
// asked of it, a limit is reached, its tokens take longer, it is spared less work, or it stands still.
package slow
