package ranks

// GPUs returns what the accelerators of each rank are called: "NVIDIA H100 80GB HBM3"; "" where
// no file tells, or some are called otherwise.
func (m *Ranks) GPUs() []string {
	names := make([]string, len(m.Tracks))
	for i, r := range m.Tracks {
		known, several := "", false
		for _, c := range r.Captures {
			for _, d := range c.File.Meta.Devices {
				several = several || known != "" && d.Name != known
				known = d.Name
			}
		}
		if !several {
			names[i] = known
		}
	}
	return names
}
