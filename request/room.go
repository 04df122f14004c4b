package request

import (
	"strconv"
	"strings"
)

// IsRoom reports whether text is a bootstrap room.
func IsRoom(text string) bool { return RoomText(text) != "" }

// RoomText normalizes a bootstrap room, which may be written as a decimal number or in
// hex, to "0x" and hex digits; "" if it is none, or 0.
func RoomText(text string) string {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		text = "0x" + strconv.FormatUint(n, 16)
	}
	text = strings.ToLower(text)
	if !strings.HasPrefix(text, "0x") || strings.Trim(text[2:], "0") == "" {
		return ""
	}
	return text
}
