package inputs

import (
	"bytes"
	"errors"

	"github.com/sgtrace/sgtrace/perfetto"
)

// foreign lists what is given in the place of an input, by the magic that it has, with
// what it is and what to do about it.
var foreign = []struct {
	at           int
	magic        string
	what, advice string
}{
	{0, "\xff\xfe", "UTF-16 file", "is UTF-16 text, as PowerShell writes it: convert it with iconv -f UTF-16 -t UTF-8"},
	{0, "\xfe\xff", "UTF-16 file", "is UTF-16 text: convert it with iconv -f UTF-16 -t UTF-8"},
	{0, "PK\x03\x04", "zip archive", "is a zip archive that cannot be unpacked here: unzip it and give the files"},
	{0, "\xfd7zXZ\x00", "xz file", "is compressed with xz: run unxz -k on it and give the result"},
	{0, "BZh", "bzip2 file", "is compressed with bzip2: run bunzip2 -k on it and give the result"},
	{0, "\x04\x22\x4d\x18", "lz4 file", "is compressed with lz4: run unlz4 -k on it and give the result"},
	{257, "ustar", "tar archive", "is a tar archive that cannot be unpacked here: unpack it and give the files"},
}

// A foreignError says what an input is, and what to do about it. It is an
// errUnknownFormat.
type foreignError struct{ what, advice string }

func (e foreignError) Error() string { return e.advice }

func (e foreignError) Is(target error) bool { return target == errUnknownFormat }

// unknownFormat says what an input is that has none of Formats.
func unknownFormat(head []byte) error {
	for _, f := range foreign {
		if len(head) > f.at && bytes.HasPrefix(head[f.at:], []byte(f.magic)) {
			return foreignError{f.what, f.advice}
		}
	}
	if perfetto.Sniff(head) {
		return errPerfetto
	}
	return errUnknownFormat
}

var (
	errUnknownFormat = errors.New("not a format that sgtrace reads; 'sgtrace help inspect' lists them")
	errPerfetto      = foreignError{"Perfetto trace", "looks like a Perfetto trace, which 'sgtrace open' can show but no command can read: give the files that it was made from"}
	errZeros         = errors.New("begins with zeros: the program that wrote it was interrupted or is still writing; copy the file again")
)
