// Package words formats numbers, times, and names for sentences: "1.3 ms", "12:04:33.1 ± 0.2 s", "p < 1e-12", a
// command line quoted for a shell. It knows nothing of tables, requests, or profiles, so that every report can use
// it.
package words
