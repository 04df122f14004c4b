package otlpjson

import "errors"

var (
	errNotSpan = errors.New("another record begins where a span should")
	errNumber  = errors.New("a number that is none")
	errID      = errors.New("an id that is neither hex nor base64")
)
