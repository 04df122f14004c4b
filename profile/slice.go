package profile

import (
	"math"
	"strconv"

	"github.com/sgtrace/sgtrace/trace"
)

// A Slice is an activity with a duration, of the thread or stream of its row.
type Slice struct {
	Time trace.Time
	Dur  int64 // ns, >= 0
	// Correlation joins calls to the work that they put on devices, within a Part of the profile: one call may
	// start hundreds of kernels (CUDA graphs). 0 is none. It is 0 in files that sgtrace itself wrote with arrows
	// from launches: merged ranks share the ids, and Arrows have the same information.
	Correlation int64
	Name, Cat   trace.Sym
	Args        trace.ArgsID
	Place       Place
}

// End returns the end of s.
func (s *Slice) End() trace.Time { return s.Time + trace.Time(s.Dur) }

// IsLaunch reports whether s is a call that may have requested work from a device: both have one correlation.
func (s *Slice) IsLaunch() bool { return s.Correlation != 0 && s.Place.Kind() == CallSlice }

// IsWork reports whether s is work of a device that a call may have requested.
func (s *Slice) IsWork() bool { return s.Correlation != 0 && s.Place.Kind() != CallSlice }

// A Place is the row of a slice, an index in Profile.Rows, and its kind, in 4 bytes, as a trace has millions of
// slices.
type Place uint32

// SliceKind is the kind of a slice.
type SliceKind uint8

const (
	OtherSlice SliceKind = iota // used in no report: waits of devices, calls of other libraries
	KernelSlice
	CopySlice // between memories, or a memory fill
	CallSlice // into the CUDA runtime or driver, or those of other devices
	RangeSlice
	OperatorSlice
	PythonSlice
	SystemSlice // a call into the operating system
	sliceKinds  // number of kinds
)

// On returns the place of a slice of this kind on a row.
func (k SliceKind) On(row int32) Place { return Place(row)*Place(sliceKinds) + Place(k) }

// Row returns the row of a place.
func (p Place) Row() int32 { return int32(p / Place(sliceKinds)) }

// Kind returns the kind of slice at a place.
func (p Place) Kind() SliceKind { return SliceKind(p % Place(sliceKinds)) }

// OnRow returns a place of the same kind on another row.
func (p Place) OnRow(row int32) Place { return p.Kind().On(row) }

// CallCategories are the categories of calls that launch work on devices, and
// CopyCategories those of copies, in the terms of PyTorch's profiler.
var (
	CallCategories = []string{"cuda_runtime", "cuda_driver", "xpu_runtime", "xpu_driver", "mtia_runtime", "glow_runtime", "hpu_op",
		"privateuse1_runtime", "privateuse1_driver"}
	CopyCategories = []string{"gpu_memcpy", "gpu_memset"}
	// WorkCategories are the categories of work of devices, FrameCategories those of activities of threads other
	// than calls.
	WorkCategories  = append([]string{KernelCategory}, CopyCategories...)
	FrameCategories = []string{OperatorCategory, PythonCategory, SystemCategory}
)

// Categories of kernels, of annotations, and of activities of threads.
const (
	KernelCategory     = "kernel"
	AnnotationCategory = "user_annotation"
	InstantCategory    = "cpu_instant_event"
	OperatorCategory   = "cpu_op"
	PythonCategory     = "python_function"
	SystemCategory     = "osrt" // calls into the operating system, of Nsight Systems
)

// categoriesOf are the categories of each kind; all others are other slices.
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

// Categories returns the categories of the kind; nil means all that have no kind.
func (k SliceKind) Categories() []string { return categoriesOf[k] }

// A Launch is a call that puts work on a device, recorded before it is known whether the call is kept.
type Launch struct {
	Time        trace.Time
	Correlation int64
	Row         int32
}

// UnknownResult is the result of a call whose return value was not recorded. -1 is taken, as calls of the
// operating system return it.
const UnknownResult = math.MinInt32

// notReady is the result of calls that only ask whether work has ended.
const notReady = 600

// Failed reports whether a return value means that a call failed: 0 is success, and 600 means that the work in
// question goes on.
func Failed(result int32) bool { return result > 0 && result != notReady }

// ResultName returns CUDA's name of a result: "cudaErrorLaunchOutOfResources". The driver has the same numbers.
// An unknown result is returned as its number.
func ResultName(result int32) string {
	if name, ok := resultNames[result]; ok {
		return name
	}
	return strconv.Itoa(int(result))
}

// resultNames are results of CUDA by their numbers since CUDA 10.1.
var resultNames = map[int32]string{
	0: "cudaSuccess", 1: "cudaErrorInvalidValue", 2: "cudaErrorMemoryAllocation", 3: "cudaErrorInitializationError",
	4: "cudaErrorCudartUnloading", 5: "cudaErrorProfilerDisabled", 9: "cudaErrorInvalidConfiguration", 12: "cudaErrorInvalidPitchValue",
	13: "cudaErrorInvalidSymbol", 17: "cudaErrorInvalidDevicePointer", 21: "cudaErrorInvalidMemcpyDirection", 34: "cudaErrorStubLibrary",
	35: "cudaErrorInsufficientDriver", 36: "cudaErrorCallRequiresNewerDriver", 46: "cudaErrorDevicesUnavailable",
	52: "cudaErrorMissingConfiguration", 98: "cudaErrorInvalidDeviceFunction", 100: "cudaErrorNoDevice", 101: "cudaErrorInvalidDevice",
	102: "cudaErrorDeviceNotLicensed", 200: "cudaErrorInvalidKernelImage", 201: "cudaErrorDeviceUninitialized",
	205: "cudaErrorMapBufferObjectFailed", 209: "cudaErrorNoKernelImageForDevice", 214: "cudaErrorECCUncorrectable",
	216: "cudaErrorDeviceAlreadyInUse", 217: "cudaErrorPeerAccessUnsupported", 218: "cudaErrorInvalidPtx", 220: "cudaErrorNvlinkUncorrectable",
	222: "cudaErrorUnsupportedPtxVersion", 300: "cudaErrorInvalidSource", 301: "cudaErrorFileNotFound", 304: "cudaErrorOperatingSystem",
	400: "cudaErrorInvalidResourceHandle", 401: "cudaErrorIllegalState", 500: "cudaErrorSymbolNotFound", notReady: "cudaErrorNotReady",
	700: "cudaErrorIllegalAddress", 701: "cudaErrorLaunchOutOfResources", 702: "cudaErrorLaunchTimeout",
	704: "cudaErrorPeerAccessAlreadyEnabled", 705: "cudaErrorPeerAccessNotEnabled", 708: "cudaErrorSetOnActiveProcess",
	709: "cudaErrorContextIsDestroyed", 710: "cudaErrorAssert", 711: "cudaErrorTooManyPeers",
	712: "cudaErrorHostMemoryAlreadyRegistered", 713: "cudaErrorHostMemoryNotRegistered", 714: "cudaErrorHardwareStackError",
	715: "cudaErrorIllegalInstruction", 716: "cudaErrorMisalignedAddress", 717: "cudaErrorInvalidAddressSpace", 718: "cudaErrorInvalidPc",
	719: "cudaErrorLaunchFailure", 720: "cudaErrorCooperativeLaunchTooLarge", 800: "cudaErrorNotPermitted", 801: "cudaErrorNotSupported",
	802: "cudaErrorSystemNotReady", 803: "cudaErrorSystemDriverMismatch", 900: "cudaErrorStreamCaptureUnsupported",
	901: "cudaErrorStreamCaptureInvalidated", 902: "cudaErrorStreamCaptureMerge", 903: "cudaErrorStreamCaptureUnmatched",
	904: "cudaErrorStreamCaptureUnjoined", 905: "cudaErrorStreamCaptureIsolation", 906: "cudaErrorStreamCaptureImplicit",
	907: "cudaErrorCapturedEvent", 908: "cudaErrorStreamCaptureWrongThread", 909: "cudaErrorTimeout",
	910: "cudaErrorGraphExecUpdateFailure", 911: "cudaErrorExternalDevice", 912: "cudaErrorInvalidClusterSize", 999: "cudaErrorUnknown",
}
