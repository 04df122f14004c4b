package page

import "strings"

// A Text is a sentence in which some words lead somewhere.
type Text []Piece

// A Piece is a part of a text. Href is where it leads to on the page, "#latency"; "" is
// nowhere.
type Piece struct{ Text, Href string }

// Plain is a text that leads nowhere.
func Plain(text string) Text { return Text{{Text: text}} }

// String is the text without its links.
func (t Text) String() string {
	var b strings.Builder
	for _, p := range t {
		b.WriteString(p.Text)
	}
	return b.String()
}

// textTemplate defines how templates write a text.
const textTemplate = `{{define "text"}}{{range .}}{{if .Href}}<a href="{{.Href}}">{{printable .Text}}</a>{{else}}{{printable .Text}}{{end}}{{end}}{{end}}`
