package request

import "github.com/sgtrace/sgtrace/internal/redact"

// Learn tells r which hosts and ids of requests there are.
func (s *Set) Learn(r *redact.Redactor) {
	for i := range s.Procs {
		r.LearnHost(s.Procs[i].Host)
		r.LearnHost(s.HostOf(i))
		r.LearnRequest(s.Procs[i].Instance)
	}
	for i := range s.Parts {
		r.LearnRequest(s.Parts[i].RID)
		r.LearnRequest(s.Parts[i].FullID)
	}
	for i := range s.Requests {
		r.LearnRequest(s.Requests[i].RID)
	}
	for _, f := range s.Files {
		r.LearnFile(f.Name)
	}
}

// Redact gives hosts, ids, files and free text the names of r, which must have learned
// all there is to learn. Whoever looks for a request by its id does so before.
func (s *Set) Redact(r *redact.Redactor) {
	s.redact = r
	s.Names = s.Names.Rename(r.Host)
	for i := range s.Procs {
		p := &s.Procs[i]
		p.Host, p.Label, p.Instance, p.Service = r.Host(p.Host), r.Scrub(p.Label), r.Request(p.Instance), r.Scrub(p.Service)
	}
	for i := range s.Parts {
		p := &s.Parts[i]
		p.RID, p.FullID, p.Model = r.Request(p.RID), r.Request(p.FullID), r.Scrub(p.Model)
	}
	for i := range s.Requests {
		s.Requests[i].RID, s.Requests[i].Reason = r.Request(s.Requests[i].RID), r.Reason(s.Requests[i].Reason)
	}
	s.redactReasons(r.Reason)
	for i := range s.Files {
		s.Files[i].Name = r.Path(s.Files[i].Name)
	}
	s.names = s.Syms.Names()
}
