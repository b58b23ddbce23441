package markers

import (
	"strings"
	"testing"

	"example.com/cmctl/pkg/types/lines"
)

func TestMarksLookLikeGits(t *testing.T) {
	m := Marks{Size: 7, Mine: "yours", Base: "when you opened it", Theirs: "now: cmctl-set"}
	got := m.Text(lines.Merged{{Text: "a\n"}, {Conflict: true, Mine: "b\n", Base: "c\n", Theirs: ""}, {Text: "d"}})
	want := `a
<<<<<<< yours
b
||||||| when you opened it
c
=======
>>>>>>> now: cmctl-set
d`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if left := Left(got, 7); len(left) != 4 || left[0] != 2 || left[3] != 7 {
		t.Errorf("markers are left in lines %v", left)
	}
}

func TestMarkersAreLongerThanAnyInTheText(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{
		{"", 7},
		{"a <<<<<<<<<< b\n", 7},
		{"======\n", 7},
		{"x\n=======\n", 8},
		{"  >>>>>>>>> theirs", 10},
		{"\t||||||||\r\n", 9},
	} {
		if got := Size(c.text); got != c.want {
			t.Errorf("%q: %d, want %d", c.text, got, c.want)
		}
	}
}

func TestALabelStaysOnItsLine(t *testing.T) {
	m := Marks{Size: 7, Mine: "a\n=======\nb", Base: "c\u2028", Theirs: "d\x00"}
	text := m.Text(lines.Merged{{Conflict: true, Mine: "1\n", Base: "2\n", Theirs: "3\n"}})
	if n := len(Left(text, 7)); n != 4 || strings.ContainsAny(text, "\u2028\x00") {
		t.Errorf("%d markers in\n%s", n, text)
	}
}

// Whatever two sides made of a text: taking one side everywhere gives exactly
// that side's text, but for the line feed that a marker needs; and a text with
// a marker in it is known for one, until the last is gone.
func FuzzTakingASideGivesItsText(f *testing.F) {
	f.Add("a\n", "b\n", "c\n", "d\n", "e\n", "f\n", "g\n", "h\n")
	f.Add("", "", "x", "=======\n", "<<<<<<< yours\n", "\n\n", "", ">>>>>>> now\n")
	f.Add("  |||||||\n", "=\n", "\r\n", "\t====", "", "", "", "last")
	f.Fuzz(func(t *testing.T, before, mine, base, theirs, between, mine2, base2, theirs2 string) {
		regions := lines.Merged{
			{Text: before}, {Conflict: true, Mine: mine, Base: base, Theirs: theirs},
			{Text: between}, {Conflict: true, Mine: mine2, Base: base2, Theirs: theirs2},
		}
		// All but the last of a text are whole lines.
		for i := range regions {
			r := &regions[i]
			for _, s := range []*string{&r.Text, &r.Mine, &r.Base, &r.Theirs} {
				if i < len(regions)-1 && *s != "" && !strings.HasSuffix(*s, "\n") {
					*s += "\n"
				}
			}
		}
		size := Size(before, mine, base, theirs, between, mine2, base2, theirs2)
		text := Marks{Size: size, Mine: "yours", Base: "was", Theirs: "now"}.Text(regions)
		left := Left(text, size)
		if len(left) != 8 {
			t.Fatalf("%d markers are found in\n%s", len(left), text)
		}
		for s := Mine; s <= Theirs; s++ {
			want := Resolve(regions, s)
			if last := of(regions[3], s); last != "" && !strings.HasSuffix(last, "\n") {
				want += "\n"
			}
			if got := Take(text, size, s); got != want {
				t.Fatalf("side %d is %q, want %q, in\n%s", s, got, want, text)
			}
			if n := len(Left(Take(text, size, s), size)); n != 0 {
				t.Fatalf("%d markers are found where none is left", n)
			}
		}
		all := strings.SplitAfter(text, "\n")
		for i, line := range left {
			without := strings.Join(all[:line-1], "") + strings.Join(all[line:], "")
			if n := len(Left(without, size)); n != 7 {
				t.Fatalf("without marker %d, %d are found", i, n)
			}
		}
	})
}
