package main

import (
	"fmt"
	"os"
)

// peak is the program, which then writes the most memory that it had at any time, in
// bytes, to a file: "peak FILE report dump.jsonl".
func peak() {
	status := run(append([]string{"sgtrace"}, os.Args[2:]...), os.Stdin, os.Stdout, os.Stderr)
	if err := os.WriteFile(os.Args[1], fmt.Append(nil, peakMemory()), 0o666); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitUsage) // which no mutant may
	}
	os.Exit(status)
}

// asUsersRun is the environment of a child whose memory is measured: its garbage collector
// is as the program sets it. "make test" runs tests with a lazier one.
func asUsersRun() []string { return []string{"GOGC=", "GOMEMLIMIT="} }
