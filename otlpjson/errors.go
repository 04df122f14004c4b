package otlpjson

import "errors"

// What can be wrong with the structure of an input. It ends the record that is
// being read; see parser.resync.
var (
	errBegins   = errors.New("another record begins inside this one")
	errHeadless = errors.New("a record without the document around it")
	errNoSpan   = errors.New("an object in the list of spans is not a span")
	errTooLong  = errors.New("a record that is longer than any real one")
)

// What can be wrong with a record whose structure is whole. It costs the record
// and nothing else.
var (
	errNumber   = errors.New("a number that is not valid")
	errID       = errors.New("an ID that is neither hex nor base64 of the right length")
	errType     = errors.New("a field of the wrong type")
	errRepeated = errors.New("a field that occurs twice, as if two spans ran together")
	errMissing  = errors.New("no trace id, span id, start or end")
	errProtobuf = errors.New("damaged protobuf")
)
