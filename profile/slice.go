package profile

import "github.com/sgtrace/sgtrace/trace"

// A Slice is what somebody did for some time: a thread, a stream, whatever its row stands for.
type Slice struct {
	Time trace.Time
	Dur  int64 // ns, >= 0
	// Correlation joins calls to the work that they put on devices, within a Part of the profile:
	// one call may start hundreds of kernels (CUDA graphs). 0 is none. It is 0 in what sgtrace
	// itself wrote with arrows from launches: ranks that were merged share the ids, and Arrows say
	// the same.
	Correlation int64
	Name, Cat   trace.Sym
	Args        trace.ArgsID
	Place       Place
}

// End returns the instant at which s ends.
func (s *Slice) End() trace.Time { return s.Time + trace.Time(s.Dur) }

// IsLaunch and IsWork report whether others may have the same correlation: the call asked for
// what the device did.
func (s *Slice) IsLaunch() bool { return s.Correlation != 0 && s.Place.Kind() == CallSlice }
func (s *Slice) IsWork() bool   { return s.Correlation != 0 && s.Place.Kind() != CallSlice }

// A Place is the row of a slice, an index of Profile.Rows, and its kind, in 4 bytes: of the
// slices of a trace there are millions.
type Place uint32

// SliceKind says what a slice is.
type SliceKind uint8

const (
	OtherSlice SliceKind = iota // what no report knows: waits of devices, calls of other libraries
	KernelSlice
	CopySlice // between memories, or what fills one
	CallSlice // into the CUDA runtime or driver, and those of other devices
	RangeSlice
	OperatorSlice
	PythonSlice
	SystemSlice // a call into the operating system
	sliceKinds  // how many there are
)

// On returns the place of a slice of the kind on a row.
func (k SliceKind) On(row int32) Place { return Place(row)*Place(sliceKinds) + Place(k) }

// Row and Kind take a place apart.
func (p Place) Row() int32      { return int32(p / Place(sliceKinds)) }
func (p Place) Kind() SliceKind { return SliceKind(p % Place(sliceKinds)) }

// OnRow returns a place of the same kind on another row.
func (p Place) OnRow(row int32) Place { return p.Kind().On(row) }

// CallCategories are the categories of calls that launch work on devices, and
// CopyCategories those of copies, in the terms of PyTorch's profiler.
var (
	CallCategories = []string{"cuda_runtime", "cuda_driver", "xpu_runtime", "xpu_driver", "mtia_runtime", "glow_runtime", "hpu_op",
		"privateuse1_runtime", "privateuse1_driver"}
	CopyCategories = []string{"gpu_memcpy", "gpu_memset"}
	// WorkCategories are those of what a device does, FrameCategories those of what threads did
	// beside calls.
	WorkCategories  = append([]string{KernelCategory}, CopyCategories...)
	FrameCategories = []string{OperatorCategory, PythonCategory, SystemCategory}
)

// Categories of kernels, of annotations, and of what threads did.
const (
	KernelCategory     = "kernel"
	AnnotationCategory = "user_annotation"
	InstantCategory    = "cpu_instant_event"
	OperatorCategory   = "cpu_op"
	PythonCategory     = "python_function"
	SystemCategory     = "osrt" // calls into the operating system, of Nsight Systems
)

// categoriesOf are the categories of each kind; all that are not here are other slices.
var categoriesOf = [sliceKinds][]string{KernelSlice: {KernelCategory}, CopySlice: CopyCategories, CallSlice: CallCategories, RangeSlice: {AnnotationCategory},
	OperatorSlice: {OperatorCategory}, PythonSlice: {PythonCategory}, SystemSlice: {SystemCategory}}

var kindOfCategory = func() map[string]SliceKind {
	kinds := map[string]SliceKind{}
	for kind, categories := range categoriesOf {
		for _, c := range categories {
			kinds[c] = SliceKind(kind)
		}
	}
	return kinds
}()

// SliceKindOf returns the kind of slices of a category.
func SliceKindOf(category string) SliceKind { return kindOfCategory[category] }

// Categories returns those of the kind; nil is all that have no kind.
func (k SliceKind) Categories() []string { return categoriesOf[k] }

// A Launch is a call that puts work on a device, for those who look for it before they know whether
// it is kept.
type Launch struct {
	Time        trace.Time
	Correlation int64
	Row         int32
}
