package request

// HostNames returns the short name of every host, or the full one where two
// hosts would have the same.
func (s *Set) HostNames() map[string]string {
	owner := map[string]string{}
	shared := map[string]bool{}
	for i := range s.Procs {
		p := &s.Procs[i]
		if other, ok := owner[p.ShortHost()]; ok && other != p.Host {
			shared[p.ShortHost()] = true
		}
		owner[p.ShortHost()] = p.Host
	}
	names := map[string]string{}
	for i := range s.Procs {
		p := &s.Procs[i]
		names[p.Host] = p.ShortHost()
		if shared[p.ShortHost()] && p.Host != "" {
			names[p.Host] = p.Host
		}
	}
	return names
}
