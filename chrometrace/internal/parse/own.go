package parse

// An Identity is what the writer tells of a process or a thread.
type Identity struct {
	Part, Label string // of a process
	PID, TID    string // of a thread
}

// identity reads what the event that names a process or a thread tells of it.
func (p *parser) identity() Identity {
	host, rank := p.textArg(argHost), p.textArg(argRank)
	between := ""
	if host != "" && rank != "" {
		between = "/"
	}
	return Identity{Part: p.masked(p.textArg(argPart)), Label: host + between + rank, PID: p.textArg(argPID), TID: p.textArg(argTID)}
}
