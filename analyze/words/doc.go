// Package words writes numbers, times and names as sentences want them: "1.3 ms",
// "12:04:33.1 ± 0.2 s", "p < 1e-12", a command line that a shell takes apart again.
// It knows nothing of tables, requests or profiles, so that every report can use it.
package words
