package live

import (
	"os/exec"
	"slices"
	"strings"
)

// A Desktop describes a machine, as far as it decides how to open a browser there.
type Desktop struct {
	OS   string // as in runtime.GOOS
	Env  func(string) string
	Find func(program string) bool // reports whether a program can be run
}

// openers are programs that open a link on Linux and BSD desktops; the first one that exists is used. In
// the Windows Subsystem for Linux, windowsOpeners come first.
var (
	openers        = [][]string{{"xdg-open"}, {"gio", "open"}, {"sensible-browser"}, {"x-www-browser"}, {"firefox"}, {"chromium"}, {"google-chrome"}}
	windowsOpeners = [][]string{{"wslview"}, {"rundll32.exe", "url.dll,FileProtocolHandler"}}
)

// Browser returns the command that opens a link in a browser on this machine; nil if there is none, or
// nobody is there to see it.
func Browser(on Desktop, link string) []string {
	if on.Env("SSH_CONNECTION") != "" {
		return nil
	}
	if command := ofEnvironment(on, link); command != nil {
		return command
	}
	switch on.OS {
	case "darwin":
		return []string{"open", link}
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler", link}
	}
	onWindows := on.Env("WSL_DISTRO_NAME") != ""
	if on.Env("DISPLAY") == "" && on.Env("WAYLAND_DISPLAY") == "" && !onWindows {
		return nil
	}
	list := openers
	if onWindows {
		list = slices.Concat(windowsOpeners, openers)
	}
	for _, opener := range list {
		if on.Find(opener[0]) {
			return append(slices.Clone(opener), link)
		}
	}
	return nil
}

// ofEnvironment returns the command from $BROWSER: the first one in the list that can be run, with %s
// replaced by the link.
func ofEnvironment(on Desktop, link string) []string {
	for entry := range strings.SplitSeq(on.Env("BROWSER"), ":") {
		command := strings.Fields(entry)
		if len(command) == 0 || !on.Find(command[0]) {
			continue
		}
		given := false
		for i := range command[1:] {
			given = given || strings.Contains(command[i+1], "%s")
			command[i+1] = strings.ReplaceAll(command[i+1], "%s", link)
		}
		if !given {
			command = append(command, link)
		}
		return command
	}
	return nil
}

// CanRun reports whether a program is in the PATH.
func CanRun(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// Start starts a command returned by [Browser] and does not wait for it.
func Start(command []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // reaps it; its status has no information
	return nil
}

// Tunnel returns the SSH command that lets the browser on the user's machine reach a server here; "" if the
// user did not connect by SSH.
func Tunnel(env func(string) string) string {
	from := strings.Fields(env("SSH_CONNECTION")) // client, its port, server, its port
	if len(from) != 4 {
		return ""
	}
	command := "ssh -L 9001:" + Addr
	if from[3] != "22" {
		command += " -p " + from[3]
	}
	host := from[2]
	if user := env("USER"); user != "" {
		host = user + "@" + host
	}
	return command + " " + host
}

// Hyperlink returns a link that opens with a click in a terminal, even if it is wrapped.
func Hyperlink(link string) string { return "\x1b]8;;" + link + "\x1b\\" + link + "\x1b]8;;\x1b\\" }
