package lines

import "strings"

// split cuts a text into lines that keep their terminators.
func split(text string) []string {
	all := strings.SplitAfter(text, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// numbering gives equal lines the same number, over several texts.
type numbering map[string]int

func (n numbering) of(lines []string) []int {
	out := make([]int, len(lines))
	for i, line := range lines {
		number, known := n[line]
		if !known {
			number = len(n)
			n[line] = number
		}
		out[i] = number
	}
	return out
}

// change says that the lines [a0,a1) became the lines [b0,b1). Between two
// changes there is at least one line that is in both.
type change struct{ a0, a1, b0, b1 int }

// compare lists what turns a into b, in order. kinds is how many different
// lines there are.
func compare(a, b []int, kinds int) []change {
	x, y := newSide(a), newSide(b)
	align(x, y, kinds)
	slide(x, y)
	slide(y, x)
	var changes []change
	for i, j := 0, 0; i < len(a) || j < len(b); i, j = i+1, j+1 {
		c := change{a0: i, b0: j}
		for x.changed(i) {
			i++
		}
		for y.changed(j) {
			j++
		}
		if c.a1, c.b1 = i, j; c.a1 > c.a0 || c.b1 > c.b0 {
			changes = append(changes, c)
		}
	}
	return changes
}

// side is one of two texts that are compared.
type side struct {
	lines []int
	marks []bool // of the lines that the other text doesn't have
}

func newSide(lines []int) *side { return &side{lines, make([]bool, len(lines))} }

func (s *side) changed(i int) bool { return i >= 0 && i < len(s.marks) && s.marks[i] }

// align marks in both texts what the other lacks, so that what is left
// unmarked is the same in both.
func align(x, y *side, kinds int) {
	from := 0
	for from < min(len(x.lines), len(y.lines)) && x.lines[from] == y.lines[from] {
		from++
	}
	xEnd, yEnd := len(x.lines), len(y.lines)
	for xEnd > from && yEnd > from && x.lines[xEnd-1] == y.lines[yEnd-1] {
		xEnd, yEnd = xEnd-1, yEnd-1
	}
	inX, inY := count(x.lines, kinds), count(y.lines, kinds)
	s := search{x: x.comparable(from, xEnd, inY), y: y.comparable(from, yEnd, inX)}
	s.run()
}

// count tells how often each line occurs.
func count(lines []int, kinds int) []int {
	times := make([]int, kinds)
	for _, line := range lines {
		times[line]++
	}
	return times
}

// selection are the lines of a side that are worth comparing.
type selection struct {
	*side
	at    []int // where they stand
	lines []int // what they are
}

func (s *selection) markFrom(from, to int) {
	for _, i := range s.at[from:to] {
		s.marks[i] = true
	}
}

// How a line fares in the other text.
const (
	missing  = iota // it is not there
	matching        // it is there
	frequent        // it is there so often that it says little: blank lines, braces
)

// comparable marks the lines of [from,to) that the other text lacks, and
// frequent ones among them: a blank line or a brace within a rewritten part only
// looks as if it had stayed. The rest is selected.
func (s *side) comparable(from, to int, inOther []int) *selection {
	often := min(roughRoot(len(s.lines)), 1024)
	fates := make([]uint8, to-from)
	for i := range fates {
		switch n := inOther[s.lines[from+i]]; {
		case n == 0:
			fates[i] = missing
		case n >= often:
			fates[i] = frequent
		default:
			fates[i] = matching
		}
	}
	out := &selection{side: s}
	for i, fate := range fates {
		if fate == missing || fate == frequent && amongMissing(fates, i) {
			s.marks[from+i] = true
			continue
		}
		out.at = append(out.at, from+i)
		out.lines = append(out.lines, s.lines[from+i])
	}
	return out
}

// amongMissing tells whether around a frequent line, up to the next matching
// ones, three of four lines are missing in the other text, on both sides some.
func amongMissing(fates []uint8, i int) bool {
	const window = 100
	missed, often := 0, 0
	for _, step := range []int{-1, 1} {
		found := false
		often++
		for j := i + step; j >= max(0, i-window) && j <= min(len(fates)-1, i+window) && fates[j] != matching; j += step {
			if fates[j] == missing {
				missed++
				found = true
			} else {
				often++
			}
		}
		if !found {
			return false
		}
	}
	return often*4 < often+missed
}

// roughRoot is the power of two next to the square root, or its double.
func roughRoot(n int) int {
	root := 1
	for ; n > 0; n >>= 2 {
		root <<= 1
	}
	return root
}

// slide moves runs of marked lines that could as well stand elsewhere, as among
// repeated lines, to one place: where the other text is changed too, else to
// the last possible one. Runs that meet become one.
func slide(s, other *side) {
	// o counts the unmarked lines before the run; in both texts they are the
	// same, so that it says where in the other one the run belongs.
	gaps := other.gaps()
	for start, o := 0, 0; start < len(s.lines); {
		if !s.marks[start] {
			start, o = start+1, o+1
			continue
		}
		r := run{s, start, start, o}
		r.grow()
		r.settle(gaps)
		start, o = r.end, r.gap
	}
}

// gaps tells for each number of unmarked lines whether marked ones follow them.
func (s *side) gaps() []bool {
	filled := make([]bool, len(s.lines)+1)
	o := 0
	for _, marked := range s.marks {
		if marked {
			filled[o] = true
		} else {
			o++
		}
	}
	return filled[:o+1]
}

// run is a run of marked lines [start,end) after gap unmarked ones.
type run struct {
	*side
	start, end, gap int
}

// grow takes in the marked lines that the run has come to touch.
func (r *run) grow() {
	for r.changed(r.start - 1) {
		r.start--
	}
	for r.changed(r.end) {
		r.end++
	}
}

func (r *run) up() bool {
	if r.start == 0 || r.lines[r.start-1] != r.lines[r.end-1] {
		return false
	}
	r.start, r.end, r.gap = r.start-1, r.end-1, r.gap-1
	r.marks[r.start], r.marks[r.end] = true, false
	r.grow()
	return true
}

func (r *run) down() bool {
	if r.end == len(r.lines) || r.lines[r.start] != r.lines[r.end] {
		return false
	}
	r.marks[r.start], r.marks[r.end] = false, true
	r.start, r.end, r.gap = r.start+1, r.end+1, r.gap+1
	r.grow()
	return true
}

// settle looks for the place of the run.
func (r *run) settle(gaps []bool) {
	matched := false
	for size := -1; size != r.end-r.start; {
		size = r.end - r.start
		for r.up() {
		}
		matched = gaps[r.gap]
		for r.down() {
			matched = matched || gaps[r.gap]
		}
	}
	for matched && !gaps[r.gap] && r.up() {
	}
}
