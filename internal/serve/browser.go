package serve

import (
	"os/exec"
	"strings"
)

// Browser returns the command that opens a link in a browser on this machine; nil if there
// is none, or nobody is there to see it.
func Browser(goos string, env func(string) string, link string) []string {
	switch {
	case env("SSH_CONNECTION") != "":
		return nil
	case env("BROWSER") != "" && !strings.ContainsAny(env("BROWSER"), " :%"):
		return []string{env("BROWSER"), link}
	case goos == "darwin":
		return []string{"open", link}
	case goos == "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler", link}
	case env("DISPLAY") != "" || env("WAYLAND_DISPLAY") != "":
		return []string{"xdg-open", link}
	}
	return nil
}

// Start runs a command that [Browser] returned, and does not wait for it.
func Start(command []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // only its status is left, which says nothing
	return nil
}

// Tunnel returns the command with which the browser of the machine that a user came from
// reaches a server here; "" if the user did not come over SSH.
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

// Hyperlink makes a terminal open a link by a click on it, however it is wrapped.
func Hyperlink(link string) string { return "\x1b]8;;" + link + "\x1b\\" + link + "\x1b]8;;\x1b\\" }
