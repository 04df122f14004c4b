package main

import (
	"cmp"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// pager returns the command that shows long text; "" if the output is no terminal or none is
// wanted. As with git, less ends by itself if all fits the screen.
func (c *command) pager() string {
	if !c.paged {
		return ""
	}
	const usual = "less -FRX"
	command := cmp.Or(c.env("SGTRACE_PAGER"), c.env("PAGER"))
	if command == "" {
		if _, err := exec.LookPath("less"); err == nil {
			command = usual
		}
	}
	if command == "cat" {
		return ""
	}
	return command
}

// show writes text to the output, through a pager if there is one.
func (c *command) show(write func(io.Writer) error) error {
	command := c.pager()
	if command == "" {
		return write(c.out)
	}
	screen := c.out
	if s, ok := screen.(*scrubber); ok {
		screen = s.w // the pager needs the terminal itself
	}
	return pageThrough(command, screen, c.err, c.redacted(write))
}

// pageThrough writes text to the input of a command of the shell, whose output goes to out.
// A reader who has seen enough ends the command early, which is no error.
func pageThrough(command string, out, errOut io.Writer, write func(io.Writer) error) error {
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
