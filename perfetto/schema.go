package perfetto

import "github.com/sgtrace/sgtrace/internal/order"

// typedArgs are the arguments that millions of events have. A DebugAnnotation takes five bytes around each
// value, and a third more import time; as fields of one message, arguments take a byte or two. The message is
// an extension of TrackEvent called "debug", so trace_processor makes the same rows of both: key debug.NAME.
//
// The number of a field is its place here, counted from 1; the first 15 take one byte. Files that are opened
// together share the message, so rows must never be moved, changed, or removed: add new ones at the end.
var typedArgs = [...]struct {
	name string
	as   fieldType
}{
	{"Ev Idx", asInt},
	{"Python id", asInt},
	{"Python parent id", asInt},
	{"External id", asInt},
	{"correlation", asInt},
	{"stream", asInt},
	{"device", asInt},
	{"context", asInt},
	{"grid", asInts},
	{"block", asInts},
	{"registers per thread", asInt},
	{"shared memory", asInt},
	{"queued", asInt},
	{"est. achieved occupancy %", asInt},
	{"Record function id", asInt},

	{"blocks per SM", asReal},
	{"warps per SM", asReal},
	{"Concrete Inputs", asTexts},
	{"Input type", asWords},
	{"cbid", asInt},
	{"bytes", asInt},
	{"memory bandwidth (GB/s)", asReal},
	{"Sequence number", asInt},
	{"Fwd thread id", asInt},
	{"Collective name", asWord},
	{"dtype", asWord},
	{"Group size", asInt},
	{"In msg nelems", asInt},
	{"Out msg nelems", asInt},
	{"In split size", asText},
	{"Out split size", asText},
	{"Process Group Name", asText},
	{"Seq", asInt},
	{"Comms Id", asInt},

	{"pid", asInt},
	{"tp_rank", asInt},
	{"pp_rank", asInt},
	{"dp_rank", asInt},
	{"thread_label", asWord},
	{"batch_size", asInt},
	{"decode_ct", asInt},
	{"forward_mode", asWord},
	{"module", asWord},
	{"status", asWord},
	{"gen_ai.latency.time_in_model_prefill", asReal},
	{"gen_ai.latency.time_to_first_token", asReal},
	{"gen_ai.request.max_tokens", asInt},
	{"gen_ai.request.temperature", asReal},
	{"gen_ai.request.top_p", asReal},
	{"gen_ai.response.finish_reasons", asWord},
	{"gen_ai.usage.cached_tokens", asInt},
	{"gen_ai.usage.completion_tokens", asInt},
	{"gen_ai.usage.prompt_tokens", asInt},
	{"true_start_ns", asInt},
	{"true_end_ns", asInt},
}

// words are the values of one enumeration, numbered from 0, which trace_processor shows as text. As with
// typedArgs, add new ones at the end.
var words = [...]string{
	"", "Scalar", "float", "double", "int", "long", "long int", "bool", "c10::BFloat16", "c10::Half",
	"c10::Float8_e4m3fn", "c10::Float8_e5m2", "unsigned char", "signed char", "ScalarList", "TensorList", "GenericList", "Device",
	"Float", "Double", "Half", "BFloat16", "Float8_e4m3fn", "Float8_e5m2", "Int", "Long", "Byte", "Bool",
	"allreduce", "broadcast", "reduce", "send", "recv", "barrier", "_allgather_base", "_reduce_scatter_base", "allgather", "reduce_scatter",
	"all_to_all", "all_to_allv", "allreduce_coalesced", "allgather_into_tensor_coalesced", "reduce_scatter_tensor_coalesced",
	"Scheduler", "Tokenizer", "sglang::request", "finished", `["stop"]`, `["length"]`, "prefill", "decode",
}

// A fieldType is how the values of an argument are written. Other values become DebugAnnotations.
type fieldType uint8

const (
	notTyped fieldType = iota
	asInt              // int64
	asReal             // double
	asText             // string, if it is short
	asWord             // Word
	asInts             // repeated int64, packed
	asTexts            // repeated string, if they are short
	asWords            // repeated Word, packed
)

// descriptorType is the declaration of a fieldType.
type descriptorType struct {
	number             uint64 // of FieldDescriptorProto.Type
	enum, many, packed bool
}

var descriptorTypes = [...]descriptorType{
	asInt: {number: 3}, asReal: {number: 1}, asText: {number: 9}, asWord: {number: 14, enum: true},
	asInts: {number: 3, many: true, packed: true}, asTexts: {number: 9, many: true},
	asWords: {number: 14, enum: true, many: true, packed: true},
}

// typedField is the field of an argument.
type typedField struct {
	number uint8
	as     fieldType
}

// typedFields returns the fields of the typed arguments among the names of symbols.
func typedFields(names []string) []typedField {
	byName := make(map[string]typedField, len(typedArgs))
	for i, a := range typedArgs {
		byName[a.name] = typedField{uint8(i + 1), a.as}
	}
	return order.Each(names, func(name string) typedField { return byName[name] })
}

// appendSchema appends the packet that declares the fields of typed arguments, as far as there are symbols for
// them; no packet if there are none.
func appendSchema(b []byte, fields []typedField) []byte {
	var used [len(typedArgs)]bool
	some, enum := false, false
	for _, f := range fields {
		if f.as != notTyped {
			used[f.number-1], some = true, true
			enum = enum || descriptorTypes[f.as].enum
		}
	}
	if !some {
		return b
	}
	b, packet := open(b, tracePacket)
	b, extension := open(b, packetExtension)
	b, set := open(b, extensionSet)
	b, file := open(b, setFile)
	b = appendString(b, fileName, "sgtrace.proto")
	b = appendString(b, filePackage, "sgtrace")
	b, message := open(b, fileMessage)
	b = appendString(b, messageName, "Args")
	for i, a := range typedArgs {
		if used[i] {
			b = appendField(b, i+1, sanitized(a.name), descriptorTypes[a.as])
		}
	}
	b = shut(b, message)
	if enum {
		b = appendWords(b)
	}
	var field int
	b, field = open(b, fileExtension)
	b = appendString(b, fieldName, "debug")
	b = appendString(b, fieldExtendee, ".perfetto.protos.TrackEvent")
	b = appendUint(b, fieldNumber, eventArgs)
	b = appendUint(b, fieldLabel, labelOptional)
	b = appendUint(b, fieldKind, kindMessage)
	b = appendString(b, fieldTypeName, ".sgtrace.Args")
	return shut(shut(shut(shut(shut(b, field), file), set), extension), packet)
}

// appendField appends the declaration of one field.
func appendField(b []byte, number int, name string, d descriptorType) []byte {
	b, field := open(b, messageField)
	b = appendString(b, fieldName, name)
	b = appendUint(b, fieldNumber, uint64(number))
	label := uint64(labelOptional)
	if d.many {
		label = labelRepeated
	}
	b = appendUint(b, fieldLabel, label)
	b = appendUint(b, fieldKind, d.number)
	if d.enum {
		b = appendString(b, fieldTypeName, ".sgtrace.Word")
	}
	if d.packed {
		b = append(b, fieldOptions<<3|wireBytes, 2, optionPacked<<3|wireVarint, 1)
	}
	return shut(b, field)
}

// appendWords appends the declaration of the enumeration.
func appendWords(b []byte) []byte {
	b, enum := open(b, fileEnum)
	b = appendString(b, enumName, "Word")
	for i, w := range words {
		var value int
		b, value = open(b, enumValue)
		b = appendString(b, valueName, w)
		b = appendUint(b, valueNumber, uint64(i))
		b = shut(b, value)
	}
	return shut(b, enum)
}

// sanitized returns the name of an argument as trace_processor writes it: dots and brackets would be parts of a
// path.
func sanitized(name string) string {
	b := []byte(name)
	for i, c := range b {
		if c == '.' || c == '[' || c == ']' {
			b[i] = '_'
		}
	}
	return string(b)
}
