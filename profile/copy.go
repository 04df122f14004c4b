package profile

import (
	"slices"
	"strings"
)

// MemsetName is the name of a Copy that fills memory, as in nsys stats.
const MemsetName = "[CUDA memset]"

// Memory is a kind of memory, in the order of CUPTI.
type Memory uint8

const (
	UnknownMemory Memory = iota
	PageableMemory
	PinnedMemory
	DeviceMemory
	ArrayMemory
	ManagedMemory
	DeviceStaticMemory
	ManagedStaticMemory
	NoMemory // the source of a memory fill
)

// memoryWords are CUPTI's words for kinds of memory.
var memoryWords = [...]string{"Unknown", "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static", "None"}

func (m Memory) String() string { return memoryWords[m] }

// MemoryOf returns the kind of memory for a word of CUPTI, such as "Pageable".
func MemoryOf(word string) Memory {
	return Memory(max(0, slices.Index(memoryWords[:], word)))
}

// A CopyKind is the kinds of memory of a copy. Memory fills are from NoMemory.
type CopyKind struct{ From, To Memory }

// Pageable reports whether the operating system may move one of the two during the copy: then the driver makes
// an extra copy, and the call may take as long as the copy.
func (k CopyKind) Pageable() bool { return k.From == PageableMemory || k.To == PageableMemory }

// String returns the kind as in PyTorch's profiler, "Pageable -> Device", or only the target of a memory fill;
// "" is unknown.
func (k CopyKind) String() string {
	switch {
	case k.To == UnknownMemory && (k.From == UnknownMemory || k.From == NoMemory):
		return ""
	case k.From == NoMemory:
		return k.To.String()
	}
	return k.From.String() + " -> " + k.To.String()
}

// copyDirections maps CUPTI's directions to the words of nsys stats.
var copyDirections = map[string]string{
	"HtoD": "Host-to-Device", "DtoH": "Device-to-Host", "DtoD": "Device-to-Device", "HtoH": "Host-to-Host", "PtoP": "Peer-to-Peer",
	"HtoA": "Host-to-Array", "AtoH": "Array-to-Host", "AtoA": "Array-to-Array", "AtoD": "Array-to-Device", "DtoA": "Device-to-Array",
}

// CopyOperation returns the name of a [Copy] with a direction: "[CUDA memcpy Host-to-Device]" for "HtoD",
// "[CUDA memcpy Unified Host-to-Device]" for "Unified HtoD", which migrates pages of unified memory. known is
// false for other directions.
func CopyOperation(direction string) (name string, known bool) {
	const unified = "Unified "
	migrates := ""
	if rest, ok := strings.CutPrefix(direction, unified); ok {
		migrates, direction = unified, rest
	}
	words, known := copyDirections[direction]
	if !known {
		words = "Unknown"
	}
	return "[CUDA memcpy " + migrates + words + "]", known
}

// parseCopy translates the name of a copy in PyTorch's terms, such as "Memcpy HtoD (Pinned -> Device)" and
// "Memset (Device)", to the name in nsys stats and the kinds of memory. Other names stay as they are.
func parseCopy(name string) (operation string, kind CopyKind) {
	word, rest, _ := strings.Cut(name, " ")
	direction, memory, _ := strings.Cut(rest, "(")
	memory = strings.TrimSuffix(memory, ")")
	switch operation, known := CopyOperation(strings.TrimSpace(direction)); {
	case word == "Memset":
		return MemsetName, CopyKind{NoMemory, MemoryOf(memory)}
	case word == "Memcpy" && known:
		from, to, _ := strings.Cut(memory, " -> ")
		return operation, CopyKind{MemoryOf(from), MemoryOf(to)}
	}
	return name, CopyKind{}
}
