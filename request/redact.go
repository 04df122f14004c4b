package request

import "github.com/sgtrace/sgtrace/trace/redact"

// Learn tells r which hosts, request IDs, and files there are.
func (s *Set) Learn(r *redact.Redactor) {
	for i := range s.Procs {
		r.LearnHost(s.Procs[i].Host)
		r.LearnHost(s.HostOf(i))
		r.LearnRequest(s.Procs[i].Instance)
	}
	for i := range s.Parts {
		r.LearnRequest(s.Text(s.Parts[i].RID))
		r.LearnRequest(s.Text(s.Parts[i].FullID))
	}
	for i := range s.AllRequests() {
		r.LearnRequest(s.Text(s.Requests[i].RID))
	}
	for _, f := range s.Files {
		r.LearnFile(f.Name)
	}
}

// Redact redacts hosts, IDs, files, and free text with r, which must have learned everything. Look requests
// up by ID before.
func (s *Set) Redact(r *redact.Redactor) {
	s.redact = r
	s.Names = s.Names.Rename(r.Host)
	for i := range s.Procs {
		p := &s.Procs[i]
		p.Host, p.Label, p.Instance, p.Service = r.Host(p.Host), r.Scrub(p.Label), r.Request(p.Instance), r.Scrub(p.Service)
	}
	for i := range s.Parts {
		p := &s.Parts[i]
		p.RID, p.FullID = s.NewText(r.Request(s.Text(p.RID))), s.NewText(r.Request(s.Text(p.FullID)))
		p.Model = s.Syms.Intern(r.Scrub(s.Syms.Name(p.Model)))
	}
	for i := range s.AllRequests() {
		q := &s.Requests[i]
		q.RID, q.Reason = s.NewText(r.Request(s.Text(q.RID))), s.Syms.Intern(r.Reason(s.Syms.Name(q.Reason)))
	}
	s.redactReasons(r.Reason)
	for i := range s.Files {
		s.Files[i].Name = r.Path(s.Files[i].Name)
	}
	s.names = s.Syms.Names()
}
