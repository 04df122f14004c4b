package naming

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// shortID is the minimum number of digits shown of a host ID, as in SGLang.
const shortID = 8

// HostNames maps host IDs to names; "" if inputs disagree.
type HostNames map[string]string

// Learn records an input's name for the host with an ID. Containers on one machine may each have their own
// name: then none of these is the host's name.
func (h HostNames) Learn(id, name string) {
	if before, ok := h[id]; ok && before != name {
		name = ""
	}
	h[id] = name
}

// hosts are the names of hosts to show, by the inputs' names.
type hosts map[string]string

// nameHosts names the hosts of places: by known, or else by a unique prefix of the ID.
func nameHosts(places []Place, known HostNames) hosts {
	names := hosts{}
	for _, p := range places {
		if p.Host != "" {
			names[p.Host] = ""
		}
	}
	owners := map[string]int{} // number of hosts with each known name
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

// short returns a prefix of an ID that its neighbors in alphabetical order do not share; a text that is not
// an ID is returned in full.
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

// IsHost reports whether text is a prefix of the name or the ID of a host.
func (n *Names) IsHost(host, text string) bool {
	return host != "" && text != "" && (strings.HasPrefix(host, text) || strings.HasPrefix(n.Host(host), text))
}

// Rename replaces host names, for example by pseudonyms: f maps the inputs' names, and shown names that are
// not prefixes of these.
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
