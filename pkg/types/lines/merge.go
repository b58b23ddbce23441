package lines

import (
	"slices"
	"strings"
)

// Region is a part of a merged text. Where the two sides don't get into each
// other's way it is the Text that both changes make; else it is a Conflict: what
// stood there and what each side made of it.
type Region struct {
	Text     string
	Conflict bool
	Base     string
	Mine     string
	Theirs   string
}

// Merged is a text with the changes of two sides made, region by region.
type Merged []Region

// Conflicts is the number of regions that somebody must decide.
func (m Merged) Conflicts() int {
	n := 0
	for _, r := range m {
		if r.Conflict {
			n++
		}
	}
	return n
}

// Clean tells that there is nothing to decide.
func (m Merged) Clean() bool { return m.Conflicts() == 0 }

// Text is the text of a clean merge. Of a conflict it has nothing.
func (m Merged) Text() string { return m.Resolve(func(Region) string { return "" }) }

// Resolve is the whole text, with what decide makes of the conflicts.
func (m Merged) Resolve(decide func(Region) string) string {
	var b strings.Builder
	for _, r := range m {
		if r.Conflict {
			b.WriteString(decide(r))
			continue
		}
		b.WriteString(r.Text)
	}
	return b.String()
}

// Merge makes the changes of both sides to base. A change that both made alike
// is made once. Changes of the two sides that overlap or touch, with no line
// between them that both left as it was, are a conflict, as they are for git.
//
// Among repeated lines it can't be known which of them was added or removed: the
// change counts for every place where it could be, which makes more conflicts
// than git has, and never fewer.
func Merge(base, mine, theirs string) Merged {
	return merge(base, mine, theirs, false)
}

// Contest is Merge with every change that is not made alike on both sides as a
// conflict: for changes that fit together as lines, and still must not be put
// together without somebody's word.
func Contest(base, mine, theirs string) Merged {
	return merge(base, mine, theirs, true)
}

func merge(base, mine, theirs string, contested bool) Merged {
	m := newMerger(base, mine, theirs)
	for len(m.left[0])+len(m.left[1]) > 0 {
		m.take(m.next(), contested)
	}
	m.keep(len(m.base))
	m.flush()
	return m.out
}

// merger goes through base and the changes of both sides from top to bottom.
type merger struct {
	base   []string
	sides  [2][]string
	left   [2][]change // what is still to be merged
	done   int         // how many lines of base are dealt with
	shifts [2]int      // how many lines a side has more than base before done
	quiet  []string    // lines without conflict, since the last region
	out    Merged
}

func newMerger(base, mine, theirs string) *merger {
	m := &merger{base: split(base), sides: [2][]string{split(mine), split(theirs)}}
	numbers := numbering{}
	a := numbers.of(m.base)
	b := [2][]int{numbers.of(m.sides[0]), numbers.of(m.sides[1])}
	for i := range b {
		m.left[i] = widen(compare(a, b[i], len(numbers)), a, b[i])
	}
	return m
}

// widen extends each change over all places to which it could be moved without
// a difference to what it makes.
func widen(changes []change, a, b []int) []change {
	var out []change
	for n, c := range changes {
		room := c.a0
		if n > 0 {
			room -= changes[n-1].a1
		}
		up := max(slack(a, c.a0, c.a1, -1, room), slack(b, c.b0, c.b1, -1, room))
		room = len(a) - c.a1
		if n+1 < len(changes) {
			room = changes[n+1].a0 - c.a1
		}
		down := max(slack(a, c.a0, c.a1, 1, room), slack(b, c.b0, c.b1, 1, room))
		c = change{c.a0 - up, c.a1 + down, c.b0 - up, c.b1 + down}
		if last := len(out) - 1; last >= 0 && c.a0 <= out[last].a1 {
			out[last].a1, out[last].b1 = c.a1, c.b1
			continue
		}
		out = append(out, c)
	}
	return out
}

// slack is by how many lines the run [from,to) can be moved up or down, with
// room being how many lines there are.
func slack(lines []int, from, to, step, room int) int {
	if from == to {
		return 0
	}
	n := 0
	for n < room {
		enters, leaves := to+n, from+n
		if step < 0 {
			enters, leaves = from-n-1, to-n-1
		}
		if lines[enters] != lines[leaves] {
			break
		}
		n++
	}
	return n
}

// cluster are changes of which each touches another of the other side, and the
// part [from,to) of base that they cover.
type cluster struct {
	from, to int
	changes  [2][]change
}

// next takes the first cluster from what is left.
func (m *merger) next() cluster {
	c := cluster{from: len(m.base), to: -1}
	for _, left := range m.left {
		if len(left) > 0 {
			c.from = min(c.from, left[0].a0)
		}
	}
	c.to = c.from
	for grown := true; grown; {
		grown = false
		for side := range m.left {
			for len(m.left[side]) > 0 && m.left[side][0].a0 <= c.to {
				c.to = max(c.to, m.left[side][0].a1)
				c.changes[side] = append(c.changes[side], m.left[side][0])
				m.left[side] = m.left[side][1:]
				grown = true
			}
		}
	}
	return c
}

// take merges a cluster.
func (m *merger) take(c cluster, contested bool) {
	m.keep(c.from)
	var texts [2][]string
	for side, changes := range c.changes {
		from := c.from + m.shifts[side]
		for _, ch := range changes {
			m.shifts[side] += ch.b1 - ch.b0 - (ch.a1 - ch.a0)
		}
		texts[side] = m.sides[side][from : c.to+m.shifts[side]]
	}
	m.done = c.to
	mine, theirs := texts[0], texts[1]
	switch {
	case slices.Equal(mine, theirs):
		m.write(mine)
	case len(c.changes[0]) == 0 && !contested:
		m.write(theirs)
	case len(c.changes[1]) == 0 && !contested:
		m.write(mine)
	default:
		m.flush()
		m.out = append(m.out, Region{
			Conflict: true,
			Base:     strings.Join(m.base[c.from:c.to], ""),
			Mine:     strings.Join(mine, ""),
			Theirs:   strings.Join(theirs, ""),
		})
	}
}

// keep writes the lines of base up to a place, which both sides left as they
// were.
func (m *merger) keep(to int) {
	m.write(m.base[m.done:to])
	m.done = to
}

func (m *merger) write(lines []string) { m.quiet = append(m.quiet, lines...) }

// flush makes a region of the lines without conflict that were written.
func (m *merger) flush() {
	if len(m.quiet) > 0 {
		m.out = append(m.out, Region{Text: strings.Join(m.quiet, "")})
		m.quiet = nil
	}
}
