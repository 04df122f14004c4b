package main

import (
	"fmt"
	"os"
	"os/exec"
)

// peak runs a command, writes the most memory that it had at any time, in bytes, to a
// file, and exits as it did: "peak FILE sgtrace report dump.jsonl". It is a process of its
// own because Linux counts what the parent has as the child's, too.
func peak() {
	cmd := exec.Command(os.Args[2], os.Args[3:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Run()
	text := fmt.Sprint(peakMemory(cmd.ProcessState))
	if err := os.WriteFile(os.Args[1], []byte(text), 0o666); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitUsage) // which no mutant may
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

// asUsersRun is the environment of a child whose memory is measured: its garbage collector
// is as the program sets it. "make test" runs tests with a lazier one.
func asUsersRun() []string { return []string{"GOGC=", "GOMEMLIMIT="} }
