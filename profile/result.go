package profile

import (
	"math"
	"strconv"
)

// UnknownResult is the result of a call of which nobody recorded what it returned. -1 is
// what calls of the operating system return.
const UnknownResult = math.MinInt32

// notReady is the result of calls that only ask whether work has ended.
const notReady = 600

// Failed reports whether what a call returned means that it failed: 0 is success, and 600
// that the work it asks about goes on.
func Failed(result int32) bool { return result > 0 && result != notReady }

// ResultName returns what CUDA calls a result: "cudaErrorLaunchOutOfResources". The driver
// has the same numbers. One that is not listed is its number.
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
