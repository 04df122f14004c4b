package convert

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/dataset"
	"github.com/sgtrace/sgtrace/dataset/tasks"
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// ExtractOptions say where the dataset is and which part of the inputs goes into it.
type ExtractOptions struct {
	Dataset   string
	Arguments []string // as the user named the inputs
	Shard, Of int      // this shard, from 0, and the number of shards; Of is 0 for all inputs
	Tool      string   // the program's version
	// Redact replaces all text with pseudonyms; nil leaves it as it is.
	Redact *redact.Redactor
	Meter  inputs.Meter // may be nil
}

// Extracted counts the inputs of an extraction.
type Extracted struct {
	Inputs   int // in this shard
	There    int // already extracted by an earlier run
	Replaced int // earlier captures of inputs that changed since
	Unusable int // recorded in the dataset with the reason
}

// errNothingToExtract is returned if no input can be extracted.
var errNothingToExtract = errors.New("no input has any spans or events")

// Extract extracts the inputs of this shard, one after another. It reports problems with them to
// diags, including the problems of inputs that were extracted before.
func Extract(files []inputs.Input, opt ExtractOptions, diags *trace.Diags) (done Extracted, err error) {
	mine, err := opt.mine(files)
	if err != nil {
		return done, err
	}
	check := ""
	if opt.Redact != nil {
		check = opt.Redact.Check()
	}
	if err := tasks.AgreeOnKey(opt.Dataset, check); err != nil {
		return done, fmt.Errorf("%s: %w", opt.Dataset, err)
	}
	run, err := opt.run(len(files))
	if err == nil {
		err = run.Begin()
	}
	if err != nil {
		return done, err
	}
	if len(mine) > 0 {
		if done, err = opt.extract(mine, hostsOf(files), diags); err != nil {
			return done, err
		}
	}
	return done, run.End(len(mine))
}

// run describes the shard. Neither the order of arguments nor the working directory matters.
func (opt *ExtractOptions) run(found int) (*tasks.Run, error) {
	r := &tasks.Run{Folder: opt.Dataset, Shard: opt.Shard, Of: opt.Of, Found: found}
	for _, arg := range opt.Arguments {
		path, err := filepath.Abs(arg)
		if err != nil {
			return nil, err
		}
		if opt.Redact != nil {
			path = opt.Redact.Path(path)
		}
		r.Arguments = append(r.Arguments, path)
	}
	slices.Sort(r.Arguments)
	return r, nil
}

// extract extracts the inputs of a shard. hosts are the ones named by the inputs of all shards.
func (opt *ExtractOptions) extract(mine []inputs.Input, hosts []string, diags *trace.Diags) (done Extracted, err error) {
	found := inputs.Recognize(mine, inputs.Options{Meter: opt.Meter}, diags)
	if len(found) == 0 && opt.Of == 0 { // with shards, other processes have the rest
		return done, errNothingToExtract
	}
	done.Inputs = len(found)
	for _, x := range found {
		one := extraction{ExtractOptions: opt, x: x, diags: diags, done: &done}
		if opt.Redact != nil {
			one.pseudonyms = redact.NewMaker(opt.Redact)
			for _, host := range hosts {
				one.pseudonyms.LearnHost(host)
			}
		}
		if err == nil {
			err = one.run()
		}
		err = errors.Join(err, x.Close())
	}
	return done, err
}

// mine returns the inputs of this shard.
func (opt *ExtractOptions) mine(files []inputs.Input) (mine []inputs.Input, err error) {
	for _, in := range files {
		if in.Name == inputs.Stdin {
			return nil, errors.New("standard input cannot be extracted: it has no path by which a dataset names it; write it to a file")
		}
		if in.Extracted() {
			return nil, fmt.Errorf("%s: is in a dataset already", in.Name)
		}
		path, err := filepath.Abs(in.Name)
		if err != nil {
			return nil, err
		}
		if opt.Of == 0 || dataset.Shard(path, opt.Of) == opt.Shard {
			mine = append(mine, in)
		}
	}
	return mine, nil
}

// An extraction extracts one input.
type extraction struct {
	*ExtractOptions
	x     *inputs.Source
	diags *trace.Diags
	done  *Extracted
	// pseudonyms are made for this input alone, so that the other inputs of the shard don't matter;
	// nil without redaction.
	pseudonyms *redact.Maker
}

// hostsOf returns the distinct hosts that the names of inputs mention.
func hostsOf(files []inputs.Input) (hosts []string) {
	for _, in := range files {
		if host := naming.ParseFile(in.Name).Host; host != "" {
			hosts = append(hosts, host)
		}
	}
	return order.Distinct(hosts)
}

func (e *extraction) run() error {
	about, err := e.about()
	if err != nil {
		return err
	}
	if !dataset.Has(e.Dataset, about) {
		replaced, err := dataset.Commit(e.Dataset, about, func(dir string) error { return e.write(dir, about) })
		if err != nil {
			return fmt.Errorf("%s: %w", about.Name, err)
		}
		e.done.Replaced += replaced
	} else {
		e.done.There++
	}
	return e.report(about)
}

// about describes the input.
func (e *extraction) about() (*dataset.About, error) {
	in := e.x.Input
	paths, err := in.Files()
	if err != nil {
		return nil, err
	}
	hash, size, err := dataset.HashFiles(paths...)
	if err != nil {
		return nil, err
	}
	_, folder := in.Size()
	path, err := filepath.Abs(in.Name)
	a := &dataset.About{Name: in.Name, Path: path, Label: in.Label, Format: e.x.Format.Name, Hash: hash, Bytes: size, Folder: folder, Tool: e.Tool}
	if e.pseudonyms != nil {
		a.Redact(e.pseudonyms)
	}
	return a, err
}

// write reads the input and writes its tables.
func (e *extraction) write(dir string, about *dataset.About) error {
	diags := &trace.Diags{}
	m, err := e.x.Apart(inputs.Options{Walk: true, Filter: dataset.Arguments, Meter: e.Meter}, diags)
	content := &dataset.Content{Syms: m.Spans.Syms, Args: m.Spans.Args, Diags: diags, Pseudonyms: e.pseudonyms}
	content.Note(dataset.DuringIndex)
	switch {
	case err != nil:
		about.Unusable = err.Error()
	case e.x.Format.Series || e.x.Format.Aside:
		e.untabled(about, m, content)
	case e.x.Format.Requests:
		content.Spans = m.Spans
	default:
		content.Source, content.Are = e.x.Content, e.x.Identities()
		about.Print = content.Source.Print
		e.list(about, content)
		err = e.collectives(m, content)
	}
	if about.Unusable == "" && err != nil {
		return err
	}
	return dataset.Write(dir, about, content)
}

// untabled stores what logs, metrics, and dumps of work in flight say, for query engines, and notes that reports read
// the original, because they need more than the tables have. A redacted dataset does not know its original.
func (e *extraction) untabled(about *dataset.About, m *inputs.Loaded, content *dataset.Content) {
	if e.pseudonyms != nil && m.Spans.Len() == 0 {
		about.Unusable = "reports need the original of a " + e.x.Format.Noun + ", and a redacted one does not know its originals"
		return
	}
	content.Diags.Add(trace.DatasetUntabled.Of(e.x.Input.Name, e.x.Format.Noun))
	content.Note(dataset.DuringIndex)
	content.Series, content.Flight = m.Series, m.Flight
	if e.x.Format.Requests {
		content.Spans = m.Spans
	}
}

// list stores the inventories of the input that commands ask for.
func (e *extraction) list(about *dataset.About, content *dataset.Content) {
	list := content.Source.Inventory
	if list == nil {
		return
	}
	about.Inspected, about.Listed = &inventory.Inventory{}, &inventory.Inventory{}
	list(about.Inspected, about.Bytes, content.Are)
	content.Note(dataset.DuringInspect)
	const unknown = -1
	list(about.Listed, unknown, inputs.Unidentified(len(content.Are)))
	content.Note(dataset.DuringList)
}

// collectives reads the collectives of a recording whose rows are walked.
func (e *extraction) collectives(m *inputs.Loaded, content *dataset.Content) (err error) {
	if content.Source.Rows == nil {
		return nil
	}
	content.Collectives, err = m.Collectives(e.x)
	return err
}

// report reports the input's problems, as stored in the dataset.
func (e *extraction) report(about *dataset.About) error {
	c, err := dataset.Open(e.Dataset, about)
	if err != nil {
		return err
	}
	if c.Unusable != "" {
		e.done.Unusable++
		e.diags.Add(trace.InputUnusable.Of(c.Name, errors.New(c.Unusable)))
	}
	return c.Report(e.diags)
}
