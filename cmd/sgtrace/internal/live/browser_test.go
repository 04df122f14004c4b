package live

import (
	"slices"
	"strings"
	"testing"
)

// A browser is opened only if a user sits at this machine.
func TestBrowser(t *testing.T) {
	for _, c := range []struct{ goos, env, programs, want string }{
		{"linux", "", "xdg-open", ""},
		{"linux", "DISPLAY=:0", "gio xdg-open", "xdg-open LINK"},
		{"freebsd", "WAYLAND_DISPLAY=wayland-0", "gio", "gio open LINK"},
		{"linux", "DISPLAY=:0", "", ""},
		{"linux", "DISPLAY=:10 SSH_CONNECTION=a", "xdg-open", ""},
		{"linux", "BROWSER=firefox", "firefox", "firefox LINK"},
		{"linux", "BROWSER=none:firefox DISPLAY=:0", "xdg-open firefox", "firefox LINK"},
		{"linux", "BROWSER=none DISPLAY=:0", "xdg-open", "xdg-open LINK"},
		{"linux", "BROWSER=w3m\t%s?x", "w3m", "w3m LINK?x"},
		{"linux", "WSL_DISTRO_NAME=Ubuntu DISPLAY=:0", "xdg-open wslview", "wslview LINK"},
		{"linux", "WSL_DISTRO_NAME=Ubuntu", "rundll32.exe", "rundll32.exe url.dll,FileProtocolHandler LINK"},
		{"darwin", "", "", "open LINK"},
		{"darwin", "SSH_CONNECTION=a", "", ""},
		{"windows", "", "", "rundll32 url.dll,FileProtocolHandler LINK"},
	} {
		there := strings.Fields(c.programs)
		on := Desktop{c.goos, environment(c.env), func(program string) bool { return slices.Contains(there, program) }}
		if got := strings.Join(Browser(on, "LINK"), " "); got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.goos, c.env, got, c.want)
		}
	}
}

func TestTunnel(t *testing.T) {
	for _, c := range []struct{ connection, user, want string }{
		{"", "ann", ""},
		{"10.0.0.9 50000 10.0.0.1 22", "ann", "ssh -L 9001:127.0.0.1:9001 ann@10.0.0.1"},
		{"fe80::9 50000 fe80::1 2222", "", "ssh -L 9001:127.0.0.1:9001 -p 2222 fe80::1"},
		{"broken", "ann", ""},
	} {
		env := func(name string) string {
			return map[string]string{"SSH_CONNECTION": c.connection, "USER": c.user}[name]
		}
		if got := Tunnel(env); got != c.want {
			t.Errorf("%s: %q, want %q", c.connection, got, c.want)
		}
	}
}

// environment returns variables given as NAME=VALUE, separated by blanks.
func environment(text string) func(string) string {
	all := map[string]string{}
	for _, pair := range strings.Split(text, " ") {
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}
	return func(name string) string { return all[name] }
}
