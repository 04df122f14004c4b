package otlpjson

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// The reference for protobuf converts messages to JSON with Google's own library, for the reference
// reader. It is strict: anything that does not match the schema is an error.

// severalTimes are the repeated fields.
var severalTimes = []string{"resourceSpans", "scopeSpans", "spans", "attributes", "events", "links", "values"}

// exportRequest describes the message in a frame.
var exportRequest = sync.OnceValue(func() protoreflect.MessageDescriptor {
	file := &descriptorpb.FileDescriptorProto{Name: proto.String("otlp.proto"), Syntax: proto.String("proto2")}
	addMessage(file, "Any", protoAny)
	addMessage(file, "Request", protoDocument)
	d, err := protodesc.NewFile(file, nil)
	if err != nil {
		panic(err)
	}
	return d.Messages().ByName("Request")
})

var protoTypes = map[string]descriptorpb.FieldDescriptorProto_Type{
	"string": descriptorpb.FieldDescriptorProto_TYPE_STRING, "hex": descriptorpb.FieldDescriptorProto_TYPE_BYTES,
	"base64": descriptorpb.FieldDescriptorProto_TYPE_BYTES, "varint": descriptorpb.FieldDescriptorProto_TYPE_INT64,
	"bool": descriptorpb.FieldDescriptorProto_TYPE_BOOL, "fixed64": descriptorpb.FieldDescriptorProto_TYPE_FIXED64,
	"fixed32": descriptorpb.FieldDescriptorProto_TYPE_FIXED32, "double": descriptorpb.FieldDescriptorProto_TYPE_DOUBLE,
	"message": descriptorpb.FieldDescriptorProto_TYPE_MESSAGE,
}

// addMessage describes a message and its nested messages.
func addMessage(file *descriptorpb.FileDescriptorProto, name string, schema protoSchema) {
	m := &descriptorpb.DescriptorProto{Name: &name}
	file.MessageType = append(file.MessageType, m)
	for key, row := range schema {
		kind, label := protoTypes[row.kind], descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
		if slices.Contains(severalTimes, key) {
			label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
		}
		f := &descriptorpb.FieldDescriptorProto{Name: proto.String(key), Number: proto.Int32(int32(row.number)), Type: &kind, Label: &label}
		if row.kind == "message" {
			inner := "Any"
			if row.fields != nil {
				inner = name + "_" + key
				addMessage(file, inner, row.fields)
			}
			f.TypeName = proto.String("." + inner)
		}
		m.Field = append(m.Field, f)
	}
}

// errUnusual is for a valid message in an encoding that no exporter uses.
var errUnusual = errors.New("an unusual message")

// jsonOf returns a message as JSON.
func jsonOf(message string) ([]byte, error) {
	m := dynamicpb.NewMessage(exportRequest())
	if err := proto.Unmarshal([]byte(message), m); err != nil {
		return nil, err
	}
	// The message repeats fields, or encodes them in more bytes than necessary.
	if proto.Size(m) != len(message) {
		return nil, errUnusual
	}
	return appendJSON(nil, m, protoDocument)
}

func appendJSON(b []byte, m protoreflect.Message, schema protoSchema) (_ []byte, err error) {
	known := 0
	b = append(b, '{')
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if known++; known > 1 {
			b = append(b, ',')
		}
		key := string(f.Name())
		b = append(strconv.AppendQuote(b, key), ':')
		if !f.IsList() {
			b, err = appendValue(b, v, schema[key])
			return err == nil
		}
		b = append(b, '[')
		for i := range v.List().Len() {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendValue(b, v.List().Get(i), schema[key]); err != nil {
				return false
			}
		}
		b = append(b, ']')
		return true
	})
	if _, isAny := schema["kvlistValue"]; len(m.GetUnknown()) > 0 || isAny && known > 1 {
		return nil, errUnusual
	}
	return append(b, '}'), err
}

func appendValue(b []byte, v protoreflect.Value, row protoRow) ([]byte, error) {
	var text string
	switch row.kind {
	case "message":
		fields := row.fields
		if fields == nil {
			fields = protoAny
		}
		return appendJSON(b, v.Message(), fields)
	case "bool":
		return strconv.AppendBool(b, v.Bool()), nil
	case "fixed32":
		return strconv.AppendUint(b, v.Uint(), 10), nil
	case "hex":
		text = hex.EncodeToString(v.Bytes())
	case "base64":
		text = base64.StdEncoding.EncodeToString(v.Bytes())
	case "string":
		text = strings.ToValidUTF8(v.String(), "\ufffd")
		if text != v.String() {
			return nil, errUnusual
		}
	default:
		text = fmt.Sprint(v.Interface())
	}
	quoted, err := json.Marshal(text)
	return append(b, quoted...), err
}
