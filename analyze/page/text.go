package page

// A Text is a sentence in which some words lead somewhere.
type Text []Piece

// A Piece is a part of a text. Href is where it leads to on the page, "#latency"; "" is
// nowhere.
type Piece struct{ Text, Href string }

// textTemplate defines how templates write a text.
const textTemplate = `{{define "text"}}{{range .}}{{if .Href}}<a href="{{.Href}}">{{printable .Text}}</a>{{else}}{{printable .Text}}{{end}}{{end}}{{end}}`
