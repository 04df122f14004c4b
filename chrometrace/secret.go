package chrometrace

// hide takes the argument that begins at p.list[from:] off if it may hold a secret.
func (p *parser) hide(from int, key *argKey) {
	if !p.opt.KeepSecrets && p.secrets.Holds(p.list[from:]) {
		if p.notes.secrets == 0 {
			p.notes.secret = key.sym
		}
		p.notes.secrets++
		p.list = p.list[:from]
	}
}
