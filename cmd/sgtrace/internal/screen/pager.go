package screen

import (
	"cmp"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// PagerFor returns the command that shows long text that goes to out; "" if that is no
// terminal, or there is none.
func PagerFor(out io.Writer, env func(name string) string) string {
	if !IsTerminal(out) || env("TERM") == "dumb" {
		return ""
	}
	return pager(env)
}

// pager returns the command that shows long text; "" if there is none. As with git, less ends
// by itself if all of the text fits on the screen.
func pager(env func(name string) string) string {
	command := cmp.Or(env("SGTRACE_PAGER"), env("PAGER"))
	if command == "" {
		if _, err := exec.LookPath("less"); err == nil {
			command = "less -FRX"
		}
	}
	if command == "cat" {
		return ""
	}
	return command
}

// PageThrough writes text to the input of a command of the shell, whose output goes to out.
// A reader who has seen enough ends the command early, which is no error.
func PageThrough(command string, out, errOut io.Writer, write func(io.Writer) error) error {
	cmd := exec.Command("sh", "-c", command)
	cmd.Stdout, cmd.Stderr = out, errOut
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	// Ctrl-C is for the pager. All that is left to do is to wait for it.
	signal.Ignore(os.Interrupt)
	if err := cmd.Start(); err != nil {
		return write(out)
	}
	err = write(in)
	in.Close()
	if failed := cmd.Wait(); err == nil || errors.Is(err, syscall.EPIPE) {
		err = failed
	}
	return err
}
