package overview

// A Fact is a line of the head of an overview: what was read, how the load was.
type Fact struct{ Name, Text string }

// Facts returns the head of the overview.
func (o *Overview) Facts() []Fact {
	var list []Fact
	for _, f := range o.facts() {
		list = append(list, Fact{f.name, f.text})
	}
	return list
}
