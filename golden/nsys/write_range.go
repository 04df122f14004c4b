package nsys

// ranges writes what NVTX recorded.
func (w *writer) ranges() {
	t := w.db.Table("NVTX_EVENTS")
	w.domains(t)
	for _, o := range inOrder(w.piece, func(p *process) []nvtxRange { return p.ranges }, w.hasRange) {
		r := o.event
		t.Int("start", w.time(r.start))
		t.Int("end", w.time(min(r.end, w.to))) // an open range ends with the session
		t.Int("eventType", eventPushPop)
		if t.Null("rangeId"); r.id != 0 {
			t.Int("eventType", eventStartEnd)
			t.Int("rangeId", r.id)
		}
		t.Int("globalTid", GlobalTID(o.process.pid, o.process.pid))
		t.Int("domainId", r.domain)
		t.Null("text")
		t.Null("textId")
		if r.registered {
			t.ID("textId", r.text)
		} else {
			t.Text("text", r.text)
		}
		w.payload(t, r)
		t.Insert()
	}
}

// domains writes the domains, which each process makes for itself, and the layouts
// of payloads, which each process registers again.
func (w *writer) domains(t *Table) {
	for i, p := range w.host.processes {
		if p.comm == 0 {
			continue
		}
		// Libraries are loaded before the session begins.
		t.Int("start", w.time(w.from-int64(i+1)*ms))
		t.Null("end")
		t.Int("eventType", eventDomain)
		t.Text("text", "NCCL")
		t.Int("globalTid", GlobalTID(p.pid, p.pid))
		t.Int("domainId", ncclDomainID)
		t.Insert()
		if w.host.config.Payloads {
			w.layouts()
		}
	}
}

func (w *writer) layouts() {
	schemas, entries := w.db.Table("NVTX_PAYLOAD_SCHEMAS"), w.db.Table("NVTX_PAYLOAD_SCHEMA_ENTRIES")
	for _, l := range payloadLayouts {
		schemas.Int("domainId", ncclDomainID)
		schemas.Int("schemaId", int64(l.id))
		schemas.Int("type", payloadSimple)
		schemas.Int("numEntries", int64(len(l.fields)))
		schemas.Int("payloadSize", int64(l.size))
		schemas.Insert()
		for i, f := range l.fields {
			entries.Int("domainId", ncclDomainID)
			entries.Int("schemaId", int64(l.id))
			entries.Int("idx", int64(i))
			entries.Int("type", int64(f.kind))
			entries.Text("name", f.name)
			if entries.Null("offset"); f.offset != 0 {
				entries.Int("offset", int64(f.offset))
			}
			entries.Insert()
		}
	}
}

// tells reports whether the file has the payload of a range.
func (s *piece) tells(r *nvtxRange) bool {
	return s.host.config.Payloads && r.payload.layout != 0 && s.host.config.Schema >= Schema2022
}

// payload sets the payload of a range.
func (w *writer) payload(t *Table, r *nvtxRange) {
	t.Null("jsonText")
	t.Null("binaryData")
	switch {
	case !w.tells(r):
	case w.db.Schema >= Schema2026:
		t.Bytes("binaryData", r.payload.binary())
	default:
		t.Text("jsonText", r.payload.json())
	}
}
