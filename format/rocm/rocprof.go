package rocm

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// Rocprof reads the output of rocprofv3 with --output-format json (*_results.json).
//
// # What is odd
//
//   - Records have numbers instead of names: of a kernel, of the kind of a call, of the operation
//     within it. The tables of names come first in the file.
//   - The text of a roctx range is in a list of its own, by the correlation id of its record.
//   - The list of metadata holds the command and, since ROCm 7, the environment of the process:
//     neither is read.
//   - An id of a stream or an agent is an object with a handle.
//   - With --pmc alone, kernels are where their counters are, and in no other list.
var Rocprof = &format.Format{
	Name:    "rocprofv3 JSON",
	Doc:     "JSON of rocprofv3 (*_results.json), as --output-format json writes it",
	For:     "'sgtrace merge', 'sgtrace convert rocprof2perfetto', or 'sgtrace report --kernels' (--api, --nvtx, ...)",
	Convert: "rocprof2perfetto",
	Noun:    "rocprofv3 JSON file",
	Sniff:   func(head []byte) bool { return rocprofBegins.Match(head) },
	Index:   index("rocprofv3", readRocprof),
	Text:    true,
	Beside:  true,
	Machine: true,
}

var rocprofBegins = lazyregexp.New(`^\s*\{\s*"rocprofiler-sdk-tool"\s*:`)

// rocprofReader reads one document, with the tables of the current process.
type rocprofReader struct {
	opt      *format.Options
	to       *recorder
	d        *json.Decoder
	p        *process
	meta     rocprofMetadata
	agents   map[int64]agent
	symbols  map[int64]symbol
	kinds    []rocprofKind // for the numbers in buffer_records
	texts    map[int64]trace.Sym
	meters   map[int64]trace.Sym
	counted  map[int64][]counted      // by dispatch
	untraced map[int64]*rocprofRecord // dispatches with counters but without a trace so far
}

type rocprofMetadata struct {
	Node struct {
		Machine string `json:"machine_id"`
		Host    string `json:"hostname"`
	}
	PID int64
}
type rocprofKind struct{ Operations []string }
type handle struct{ Handle int64 }
type extent struct{ X, Y, Z int64 }

func readRocprof(in *format.Input, opt *format.Options, to *recorder) error {
	r := &rocprofReader{opt: opt, to: to}
	f, err := in.Open()
	if err != nil {
		return err
	}
	r.d = json.NewDecoder(f)
	_, at, err := jsonscan.Each(r.d, func(key string) error {
		_, _, err := jsonscan.Each(r.d, nil, r.process)
		return err
	}, nil)
	if err != nil && (r.p == nil || errors.Is(err, errShape)) {
		return errors.Join(err, f.Close())
	}
	switch {
	case err != nil:
		what := err
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			what = errors.New("the file ends early")
		}
		opt.Diags.Add(trace.InputDamaged.At(trace.Pos{File: in.Name, Offset: max(at, r.d.InputOffset())}, what))
	case to.rows == 0:
		opt.Diags.Add(trace.RocmEmpty.Of(in.Name, "it has no events", "nothing was traced"))
	}
	return f.Close()
}

var errShape = errors.New("is not the JSON of rocprofv3")

// process reads the recording of one process.
func (r *rocprofReader) process() error {
	r.p, r.kinds, r.meta = nil, nil, rocprofMetadata{}
	r.agents, r.symbols, r.texts = map[int64]agent{}, map[int64]symbol{}, map[int64]trace.Sym{}
	r.meters, r.counted, r.untraced = map[int64]trace.Sym{}, map[int64][]counted{}, map[int64]*rocprofRecord{}
	_, _, err := jsonscan.Each(r.d, func(key string) error {
		switch key {
		case "metadata":
			return r.d.Decode(&r.meta)
		case "agents":
			return eachOf(r, r.agent)
		case "counters":
			return eachOf(r, func(c *struct {
				ID   handle
				Name string
			}) {
				r.meters[c.ID.Handle] = r.opt.Syms.Intern(c.Name)
			})
		case "kernel_symbols":
			return eachOf(r, r.symbol)
		case "strings":
			return r.strings()
		case "callback_records":
			_, _, err := jsonscan.Each(r.d, r.callbacks, nil)
			return err
		case "buffer_records":
			_, _, err := jsonscan.Each(r.d, r.records, nil)
			return err
		}
		return r.skip()
	}, nil)
	r.countedOnly()
	return err
}

// processOf returns the process, creating it when its first data arrives.
func (r *rocprofReader) processOf() *process {
	if r.p == nil {
		r.p = r.to.newProcess(r.meta.PID, r.meta.Node.Host)
		r.p.boot(r.meta.Node.Machine)
	}
	return r.p
}

// eachOf decodes the elements of a list one by one. Fields with an unexpected type stay empty.
func eachOf[T any](r *rocprofReader, f func(*T)) error {
	_, _, err := jsonscan.Each(r.d, nil, func() error {
		var v T
		var wrong *json.UnmarshalTypeError
		if err := r.d.Decode(&v); err != nil && !errors.As(err, &wrong) {
			return err
		}
		f(&v)
		return nil
	})
	return err
}

func (r *rocprofReader) skip() error {
	var raw json.RawMessage
	return r.d.Decode(&raw)
}

func (r *rocprofReader) agent(a *struct {
	ID      handle
	Type    int
	Number  int32  `json:"logical_node_type_id"`
	Product string `json:"product_name"`
	Model   string `json:"model_name"`
	Name    string
}) {
	const gpu = 2
	is := agent{a.Number, a.Type == gpu}
	if is.gpu {
		r.processOf().Device(is.number, cmp.Or(a.Product, a.Model, a.Name), "")
	}
	r.agents[a.ID.Handle] = is
}

func (r *rocprofReader) symbol(s *struct {
	ID        int64  `json:"kernel_id"`
	Name      string `json:"formatted_kernel_name"`
	Mangled   string `json:"kernel_name"`
	Registers int64  `json:"arch_vgpr_count"`
}) {
	r.symbols[s.ID] = symbol{r.opt.Syms.Intern(cmp.Or(s.Name, strings.TrimSuffix(s.Mangled, ".kd"))), s.Registers}
}

// strings reads the meanings of numbers.
func (r *rocprofReader) strings() error {
	_, _, err := jsonscan.Each(r.d, func(key string) error {
		switch key {
		case "buffer_records":
			return eachOf(r, func(k *rocprofKind) { r.kinds = append(r.kinds, *k) })
		case "marker_api":
			return eachOf(r, func(m *struct {
				Key   int64
				Value string
			}) {
				r.texts[m.Key] = r.opt.Syms.Intern(m.Value)
			})
		}
		return r.skip()
	}, nil)
	return err
}

// callbacks reads the values of hardware counters.
func (r *rocprofReader) callbacks(key string) error {
	if key != "counter_collection" {
		return r.skip()
	}
	type value struct {
		Counter handle `json:"counter_id"`
		Value   float64
	}
	return eachOf(r, func(c *struct {
		Of      rocprofRecord `json:"dispatch_data"`
		Records []value
	}) {
		info := &c.Of.Dispatch
		for _, x := range c.Records {
			if name, ok := r.meters[x.Counter.Handle]; ok {
				r.counted[info.ID] = addTo(r.counted[info.ID], counted{Name: name, Value: x.Value, Device: r.agents[info.Agent.Handle].number})
			}
		}
		if c.Of.Start != 0 {
			r.untraced[info.ID] = &c.Of
		}
	})
}

// index returns the Index of a format. read passes the rows of an input to a recorder, and producer is the program that
// wrote it.
func index(producer string, read func(in *format.Input, opt *format.Options, to *recorder) error) func(*format.Input, *format.Options) (*format.Source, error) {
	again := func(in *format.Input, opt *format.Options) ([]*profile.Profile, error) {
		r := newRecorder(in, opt)
		if err := read(in, opt, r); err != nil {
			return nil, err
		}
		list := r.profiles()
		inUnix := func(p *profile.Profile) bool { return p.Meta.Origin == profile.OriginUnix }
		if r.rows > 0 && !slices.ContainsFunc(list, inUnix) {
			opt.Diags.Add(trace.RocmClock.Of(in.Name))
		}
		if r.nameless > 0 {
			opt.Diags.Add(trace.RocmNames.Of(in.Name, r.nameless))
		}
		return list, nil
	}
	return func(in *format.Input, opt *format.Options) (*format.Source, error) {
		profiles, err := again(in, opt)
		if err != nil {
			return nil, err
		}
		return &format.Source{Profiles: profiles,
			Stream: func(opt *format.Options) ([]*profile.Profile, error) {
				quiet := *opt
				quiet.Diags = &trace.Diags{} // damage was reported when the input was indexed
				return again(in, &quiet)
			},
			Inventory: func(v *inventory.Inventory, size int64, are [][]profile.Identity) {
				v.AddProfiles(inventory.Trace{File: in.Name, Size: size, Producer: producer, Runtime: "ROCm"}, profiles, are)
			}}, nil
	}
}
