package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// manPage returns the manual page.
func manPage(t *testing.T) string {
	t.Helper()
	var out, errOut bytes.Buffer
	if status := run([]string{"sgtrace", "help", "man"}, nil, &out, &errOut); status != exitOK {
		t.Fatalf("status %d: %s", status, errOut.String())
	}
	return out.String()
}

// The page names every command and every flag, and groff has no complaints.
func TestManPage(t *testing.T) {
	page := manPage(t)
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("no groff: the manual page is not formatted")
	}
	cmd := exec.Command(groff, "-ww", "-man", "-Tutf8", "-P-cbou", "-rLL=200n")
	cmd.Stdin = strings.NewReader(page)
	var text, warnings bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &warnings
	if err := cmd.Run(); err != nil || warnings.Len() > 0 {
		t.Errorf("groff: %v\n%s", err, warnings.String())
	}
	var c command
	var visit func(above string, commands []*cli.Command)
	visit = func(above string, commands []*cli.Command) {
		for _, cmd := range commands {
			name := above + " " + cmd.Name
			if len(cmd.Subcommands) > 0 {
				visit(name, cmd.Subcommands)
				continue
			}
			_, section, ok := strings.Cut(text.String(), "\n   "+name+"\n")
			if !ok {
				t.Errorf("the page does not tell about %s", name)
			}
			section, _, _ = strings.Cut(section, "\n   sgtrace ") // the next command
			for _, f := range cmd.Flags {
				for _, n := range f.Names() {
					if dashes := min(len(n), 2); !strings.Contains(section, "--"[:dashes]+n) {
						t.Errorf("the page does not tell about %s of %s", n, name)
					}
				}
			}
			if _, examples, _ := strings.Cut(cmd.Description, "Examples:\n"); !strings.Contains(section, strings.TrimSpace(strings.Split(examples, "\n")[0])) {
				t.Errorf("the page has not the examples of %s", name)
			}
		}
	}
	visit("sgtrace", c.app().Commands)
}
