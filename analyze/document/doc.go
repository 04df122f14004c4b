// Package document defines the one structure of everything that a command reports: a [Document]
// has its inputs, the warnings about them, tables and findings. [Document.Write] prints
// it as text, Markdown, CSV or JSON, so that all reports look alike to programs.
//
// JSON is one object. Empty lists are empty arrays, and unknown values are null:
//
//	{"schema":"sgtrace.report.kernels/v2","main":"kernels",
//	"inputs":[
//	{"name":"node0.sqlite","size_bytes":4096}
//	],
//	"warnings":[
//	{"severity":"notice","text":"..."}
//	],
//	"tables":[
//	{"name":"kernels","schema":"sgtrace.report.kernels/v1","title":"...",
//	"columns":[...],
//	"rows":[
//	{...}
//	],
//	"notes":[...]}
//	],
//	"findings":[
//	{...}
//	]}
//
// The schema of a document is about this object; the schema of a table is about its
// columns. CSV has room for one table: the main one, unless [Document.Choose] chose
// another.
//
// Tables of very many ranks are made short enough to read: ranks that a finding names keep their rows, and
// all others are summed up, by host or whatever larger group hosts are in ([Hosts]).
package document
