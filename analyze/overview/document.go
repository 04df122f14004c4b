package overview

import "github.com/sgtrace/sgtrace/analyze/document"

// Document is the overview as all formats have it.
func (o *Overview) Document() *document.Document {
	d := &document.Document{
		Schema: "sgtrace.report.summary/v2", Inputs: o.Files, Findings: o.Findings, Again: o.again(),
		Text: o.writeText, Markdown: o.writeMarkdown,
	}
	d.AddMain(o.findingsReport())
	return d
}
