package kernelname

import (
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
)

// FuzzClasses reads files of kernel classes. Errors name the line that is wrong; rules have the
// meaning of each line by itself, however the file is split into reads, and printing and reading
// them again changes nothing.
func FuzzClasses(f *testing.F) {
	f.Add("# our own all-reduce\ncommunication  ^my_all_reduce_\n\nMEMORY\tcopy|fill\r\n", "my_all_reduce_f16")
	f.Add("compute a b \n  other .\n", "x")
	f.Add("communication (\n", "a")
	f.Add("nothing x", "a")
	f.Add("compute", "a")
	f.Add("\ufeffcompute a\n", "a")
	f.Add("compute a\nmemory "+strings.Repeat("a", 1<<16), "a")
	f.Add(HTAClasses().String(), "ncclDevKernel_AllReduce")
	f.Add(DefaultClasses().String(), "void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*, int*)")
	f.Fuzz(func(t *testing.T, text, kernel string) {
		got, err := ReadClasses(strings.NewReader(text), "rules")
		again, err2 := ReadClasses(iotest.OneByteReader(strings.NewReader(text)), "rules")
		if (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
			t.Fatalf("%v; a byte at a time: %v", err, err2)
		}
		if err != nil {
			if !regexp.MustCompile(`^rules:[1-9][0-9]*: `).MatchString(err.Error()) {
				t.Fatalf("does not say where: %v", err)
			}
			return
		}
		want := classBy(text, kernel)
		if want == NumClasses {
			want, _ = DefaultClasses().Of(kernel)
		}
		class, _ := got.Of(kernel)
		if twice, _ := again.Of(kernel); class != want || class != twice {
			t.Fatalf("%q is %v, want %v", kernel, class, want)
		}
		printed := got.String()
		reread, err := ReadClasses(strings.NewReader(printed), "rules")
		if err != nil || len(reread.Rules) != len(got.Rules)+len(DefaultClasses().Rules) {
			t.Fatalf("%d rules are printed, and %v: %v", len(got.Rules), err, printed)
		}
		for i, r := range got.Rules {
			if again := reread.Rules[i]; again.Class != r.Class || again.pattern() != r.pattern() {
				t.Fatalf("rule %d is %v %q, and was printed as %v %q", i, again.Class, again.pattern(), r.Class, r.pattern())
			}
		}
	})
}

// classBy tries the lines one by one; NumClasses means that none matches.
func classBy(text, kernel string) Class {
	for _, line := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0][0] == '#' {
			continue
		}
		_, expression, _ := strings.Cut(line, fields[0])
		if re := regexp.MustCompile(strings.TrimSpace(expression)); !re.MatchString(kernel) && !re.MatchString(Demangle(kernel)) {
			continue
		}
		for c, name := range classNames {
			if strings.EqualFold(name, fields[0]) {
				return Class(c)
			}
		}
	}
	return NumClasses
}
