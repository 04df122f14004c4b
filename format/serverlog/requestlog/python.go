package requestlog

import (
	"bytes"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/internal/jsonscan"
)

// Received and Finished are the prefixes of the lines of --log-requests, unless --log-requests-format is json: a request as
// printed by Python, with its prompt, and after ", out=" its answer, which ends with its meta_info.
var (
	Received = []byte("Receive: obj=")
	Finished = []byte("Finish: obj=")
	outcome  = []byte(", out={")
	metaInfo = []byte("'meta_info': ")
)

// Finish reads the text after Finished: a request that SGLang has finished. It only reads the meta_info, which has the form
// of JSON records, and the keys by which the request is joined with others.
func (r *Reader) Finish(b []byte, of Line) {
	i := bytes.LastIndex(b, metaInfo)
	if i < 0 {
		return // a server of images, or the end of a long line is missing
	}
	var x rowOf
	r.text = appendJSON(r.text[:0], b[i+len(metaInfo):])
	if _, err := jsonscan.Members(r.text, 0, func(key, value []byte) { x.member(r, key, value) }); err != nil || !x.started {
		r.strange()
		return
	}
	asked := b[:i]
	if k := bytes.LastIndex(asked, outcome); k >= 0 {
		asked = asked[:k]
	}
	if k := bytes.LastIndex(asked, []byte(", stream=")); k >= 0 {
		x.stream = bytes.HasPrefix(asked[k:], []byte(", stream=True"))
	}
	if k := bytes.LastIndex(asked, []byte(", bootstrap_room=")); k >= 0 {
		room := []byte(logline.Beginning(asked[k+len(", bootstrap_room="):], "", 24))
		x.parameter(r, []byte("bootstrap_room"), room)
	}
	r.add(&x, of)
}

// appendJSON appends to dst the first Python value of b, as JSON. Of a text that is cut in the middle, 'so .. ' ... ' on',
// it keeps the beginning.
func appendJSON(dst, b []byte) []byte {
	depth := 0
	for len(b) > 0 {
		switch c := b[0]; {
		case c == '\'' || c == '"':
			dst, b = appendText(dst, b[1:], c)
			continue
		case bytes.HasPrefix(b, []byte(" ... ")):
			if b = b[len(" ... "):]; len(b) > 0 && (b[0] == '\'' || b[0] == '"') {
				_, b = appendText(nil, b[1:], b[0])
			}
			continue
		case c == '{' || c == '[':
			depth++
			dst = append(dst, c)
		case c == '}' || c == ']':
			depth--
			dst = append(dst, c)
		case c == '(':
			depth++
			dst = append(dst, '[')
		case c == ')':
			depth--
			dst = append(dst, ']')
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			word := logline.Word(b)
			dst, b = append(dst, constantOf(word)...), b[len(word):]
			continue
		default:
			dst = append(dst, c)
		}
		if b = b[1:]; depth == 0 {
			return dst
		}
	}
	return dst
}

// constantOf returns JSON's word for a Python constant. Constants that JSON lacks, such as nan, become null.
func constantOf(word string) string {
	switch word {
	case "True":
		return "true"
	case "False":
		return "false"
	case "e", "E": // in a number
		return word
	}
	return "null"
}

// appendText appends a Python text, after its opening quote, as JSON, and returns the rest of b.
func appendText(dst, b []byte, quote byte) (text, rest []byte) {
	dst = append(dst, '"')
	for len(b) > 0 && b[0] != quote {
		switch {
		case b[0] == '"':
			dst = append(dst, '\\', '"')
		case b[0] != '\\' || len(b) == 1:
			dst = append(dst, b[0])
		default:
			switch b = b[1:]; b[0] {
			case 'x':
				dst = append(dst, '\\', 'u', '0', '0')
			case '\'':
				dst = append(dst, '\'')
			case '\\', '"', 'n', 'r', 't', 'u':
				dst = append(dst, '\\', b[0])
			default:
				dst = append(dst, '\\', '\\', b[0])
			}
		}
		b = b[1:]
	}
	return append(dst, '"'), b[min(1, len(b)):]
}
