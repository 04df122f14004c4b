package naming

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// shortID is how many digits of a host's id are shown at least, as SGLang does.
const shortID = 8

// HostNames are the names of hosts by their ids; "" where inputs do not agree.
type HostNames map[string]string

// Learn notes what an input calls the host with an id. Containers of one machine may each
// call it something else: then none of that is its name.
func (h HostNames) Learn(id, name string) {
	if before, ok := h[id]; ok && before != name {
		name = ""
	}
	h[id] = name
}

// hosts are the names of hosts, by what inputs call them.
type hosts map[string]string

// nameHosts names the hosts of places: by known, else by the beginning of an id that no
// other has.
func nameHosts(places []Place, known HostNames) hosts {
	names := hosts{}
	for _, p := range places {
		if p.Host != "" {
			names[p.Host] = ""
		}
	}
	owners := map[string]int{} // of each name that is known
	for host := range names {
		if name := known[host]; name != "" && name != host {
			owners[name]++
		}
	}
	all := slices.Sorted(maps.Keys(names))
	for i, host := range all {
		if name := known[host]; name != "" && owners[name] == 1 {
			names[host] = name
			continue
		}
		names[host] = short(host, all[max(0, i-1):i], all[i+1:min(i+2, len(all))])
	}
	return names
}

// short returns the beginning of an id that its neighbors in alphabetical order do not
// have; all of a text that is not an ID.
func short(host string, neighbors ...[]string) string {
	n := shortID
	for _, list := range neighbors {
		for _, o := range list {
			for n < len(host) && strings.HasPrefix(o, host[:n]) {
				n++
			}
		}
	}
	if n >= len(host) || !isHex(host) {
		return host
	}
	return host[:n]
}

func isHex(s string) bool {
	return strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// Host returns the name of a host, [Unknown] for "". Names stay as they are.
func (n *Names) Host(host string) string {
	switch {
	case host == "":
		return Unknown
	case n == nil:
		return short(host)
	}
	return cmp.Or(n.hosts[host], host)
}

// IsHost reports whether a host is meant by text: the beginning of its name or of its id.
func (n *Names) IsHost(host, text string) bool {
	return host != "" && text != "" && (strings.HasPrefix(host, text) || strings.HasPrefix(n.Host(host), text))
}

// Rename gives hosts other names, such as pseudonyms: what inputs call them is mapped by f,
// and so are names that are not the beginning of that.
func (n *Names) Rename(f func(host string) string) *Names {
	if n == nil {
		return nil
	}
	renamed := *n
	renamed.hosts = hosts{}
	for host, name := range n.hosts {
		if strings.HasPrefix(host, name) {
			name = host
		}
		renamed.hosts[f(host)] = f(name)
	}
	return &renamed
}
