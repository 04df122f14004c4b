package main

import (
	"fmt"
	"os"
)

// peak runs the program and then writes its peak memory in bytes to a file: "peak FILE report
// dump.jsonl".
func peak() {
	status := run(append([]string{"sgtrace"}, os.Args[2:]...), os.Stdin, os.Stdout, os.Stderr)
	if err := os.WriteFile(os.Args[1], fmt.Append(nil, peakMemory()), 0o666); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitUsage) // a status that no mutant may cause
	}
	os.Exit(status)
}

// asUsersRun is the environment of a child whose memory is measured: the program itself sets the
// garbage collector. "make test" uses a lazier one.
func asUsersRun() []string { return []string{"GOGC=", "GOMEMLIMIT="} }
