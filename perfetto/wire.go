package perfetto

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Field numbers of the messages written here, by message.
const (
	tracePacket = 1

	packetClockSnapshot   = 6
	packetTimestamp       = 8
	packetSequenceID      = 10
	packetTrackEvent      = 11
	packetInternedData    = 12
	packetSequenceFlags   = 13
	packetDefaults        = 59
	packetTrackDescriptor = 60
	packetExtension       = 72
	packetAttributes      = 126

	snapshotClock        = 1
	snapshotPrimary      = 2
	clockID              = 1
	clockTimestamp       = 2
	clockIsIncremental   = 3
	defaultsClockID      = 58
	attributesAttribute  = 1
	attributeKey         = 1
	attributeStringValue = 3

	descriptorUUID          = 1
	descriptorName          = 2
	descriptorParent        = 5
	descriptorCounter       = 8
	descriptorChildOrdering = 11
	descriptorSiblingRank   = 12
	descriptorDescription   = 14
	descriptorSiblingMerge  = 15
	counterUnitName         = 6

	eventCategoryIID     = 3
	eventAnnotation      = 4
	eventType            = 9
	eventNameIID         = 10
	eventTrack           = 11
	eventIntValue        = 30
	eventFlow            = 36 // not 47, which takes eight bytes for any id
	eventTerminatingFlow = 42 // not 48, for the same reason
	eventDoubleValue     = 44
	eventCorrelationIID  = 54
	eventArgs            = 4715 // in the extension range that Perfetto has not assigned

	annotationNameIID   = 1
	annotationBool      = 2
	annotationUint      = 3
	annotationInt       = 4
	annotationDouble    = 5
	annotationString    = 6
	annotationDict      = 11
	annotationArray     = 12
	annotationStringIID = 17

	extensionSet  = 1
	setFile       = 1
	fileName      = 1
	filePackage   = 2
	fileMessage   = 4
	fileEnum      = 5
	fileExtension = 7
	messageName   = 1
	messageField  = 2
	fieldName     = 1
	fieldExtendee = 2
	fieldNumber   = 3
	fieldLabel    = 4
	fieldKind     = 5
	fieldTypeName = 6
	fieldOptions  = 8
	optionPacked  = 2
	enumName      = 1
	enumValue     = 2
	valueName     = 1
	valueNumber   = 2

	internedCategories     = 1
	internedNames          = 2
	internedArgNames       = 3
	internedArgStrings     = 29
	internedCorrelationIDs = 43
	internedIID            = 1
	internedString         = 2
)

// Values of enumerations.
const (
	typeBegin   = 1
	typeEnd     = 2
	typeInstant = 3
	typeCounter = 4

	flagsCleared = 1 // interning state starts here

	clockRealtime    = 1
	clockBoottime    = 6
	clockIncremental = 64 // the first of the ids that a sequence may define

	labelOptional = 1
	labelRepeated = 3
	kindMessage   = 11

	childOrderingExplicit = 3
	siblingMergeNone      = 2
)

// Wire types.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
)

// appendKey appends the key of a field. All numbers here are below 2048.
func appendKey(b []byte, field, wire int) []byte {
	key := field<<3 | wire
	if key < 1<<7 {
		return append(b, byte(key))
	}
	return append(b, byte(key)|1<<7, byte(key>>7))
}

// appendVarint appends a varint without a branch per byte, as processors predict their number badly.
func appendVarint(b []byte, v uint64) []byte {
	if v < 1<<7 {
		return append(b, byte(v))
	}
	return appendLongVarint(b, v)
}

func appendLongVarint(b []byte, v uint64) []byte {
	if v >= 1<<56 {
		return binary.AppendUvarint(b, v)
	}
	size := sizeOf(v)
	// Seven bits per byte, from the middle outward.
	v = v&(1<<28-1) | v&^(1<<28-1)<<4
	v = v&0x00003fff00003fff | v&0x0fffc0000fffc000<<2
	v = v&0x007f007f007f007f | v&0x3f803f803f803f80<<1
	v |= 0x8080808080808080 & (1<<(8*size-8) - 1) // set the continuation bit of all bytes but the last
	return binary.LittleEndian.AppendUint64(b, v)[:len(b)+size]
}

// sizeOf returns the length of a varint: a byte for every 7 bits.
func sizeOf(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

func appendUint(b []byte, field int, v uint64) []byte {
	return appendVarint(appendKey(b, field, wireVarint), v)
}

func appendDouble(b []byte, field int, v float64) []byte {
	return binary.LittleEndian.AppendUint64(appendKey(b, field, wireFixed64), math.Float64bits(v))
}

func appendString[S string | []byte](b []byte, field int, s S) []byte {
	b = appendVarint(appendKey(b, field, wireBytes), uint64(len(s)))
	return append(b, s...)
}

// open starts a message in b; its content is everything appended until [shut]. at is where the content begins.
func open(b []byte, field int) (_ []byte, at int) {
	b = append(appendKey(b, field, wireBytes), 0)
	return b, len(b)
}

// shut ends the message whose content begins at at. open reserved one byte for the length; moving the few
// contents that need more costs less than the three bytes per message of a fixed-size length.
func shut(b []byte, at int) []byte {
	size := len(b) - at
	if size < 1<<7 {
		b[at-1] = byte(size)
		return b
	}
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(size))
	b = append(b, length[1:n]...) // only makes room
	copy(b[at+n-1:], b[at:at+size])
	copy(b[at-1:], length[:n])
	return b
}
