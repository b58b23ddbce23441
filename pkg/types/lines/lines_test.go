package lines_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"example.com/cmctl/pkg/types/lines"
)

// shown is a merge with its conflicts as {mine|base|theirs}, each line feed as
// a slash.
func shown(m lines.Merged) string {
	return strings.ReplaceAll(m.Resolve(func(r lines.Region) string {
		return "{" + r.Mine + "|" + r.Base + "|" + r.Theirs + "}"
	}), "\n", "/")
}

func TestMerge(t *testing.T) {
	for _, c := range []struct{ name, base, mine, theirs, want string }{
		{"nothing", "", "", "", ""},
		{"no change", "a/b/", "a/b/", "a/b/", "a/b/"},
		{"mine", "a/b/", "A/b/", "a/b/", "A/b/"},
		{"theirs", "a/b/", "a/b/", "a/B/", "a/B/"},
		{"each another line", "a/b/c/", "A/b/c/", "a/b/C/", "A/b/C/"},
		{"both alike", "a/b/c/", "a/B/c/", "a/B/c/", "a/B/c/"},
		{"alike, and each another line", "a/b/c/d/e/", "A/b/c/d/E/", "A/b/C/d/e/", "A/b/C/d/E/"},
		{"the same line", "a/b/c/", "a/x/c/", "a/y/c/", "a/{x/|b/|y/}c/"},
		{"lines that touch", "a/b/c/d/", "a/x/c/d/", "a/b/y/d/", "a/{x/c/|b/c/|b/y/}d/"},
		{"an insertion at a change", "a/b/c/", "a/x/b/c/", "a/B/c/", "a/{x/b/|b/|B/}c/"},
		{"two insertions at one place", "a/b/", "a/x/b/", "a/y/b/", "a/{x/||y/}b/"},
		{"a removal against a change", "a/b/c/", "a/c/", "a/B/c/", "a/{|b/|B/}c/"},
		{"both grow from nothing", "", "x/", "y/", "{x/||y/}"},
		{"a chain of changes", "a/b/c/d/e/f/", "a/B/C/d/E/f/", "a/b/c/D/e/f/", "a/{B/C/d/E/|b/c/d/e/|b/c/D/e/}f/"},

		{"a last line without its end", "a/b/c", "A/b/c", "a/b/C", "A/b/C"},
		{"the end of the last line alone", "a/b/c/", "A/b/c/", "a/b/c", "A/b/c"},
		{"a line after an end that goes", "a/b/", "a/b/c/", "a/b", "a/{b/c/|b/|b}"},
		{"carriage returns belong to the line", "a\r/b/c/", "A\r/b/c/", "a\r/b/C\r/", "A\r/b/C\r/"},
		{"a carriage return is a change", "a/b/", "a\r/b/", "A/b/", "{a\r/|a/|A/}b/"},

		// Which of the repeated lines went, or came, nobody can know.
		{"one of three removed, the first changed", "x/a/a/a/y/", "x/a/a/y/", "x/b/a/a/y/", "x/{a/a/|a/a/a/|b/a/a/}y/"},
		{"one of three removed, what follows changed", "x/a/a/a/y/z/", "x/a/a/y/z/", "x/a/a/a/y/Z/", "x/a/a/y/Z/"},
		{"a block repeated, the first one changed", "{/a/}/z/", "{/a/}/{/a/}/z/", "{/A/}/z/", "{{/a/}/{/a/}/|{/a/}/|{/A/}/}z/"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var in [3]string
			for i, text := range []string{c.base, c.mine, c.theirs} {
				in[i] = strings.ReplaceAll(text, "/", "\n")
			}
			m := lines.Merge(in[0], in[1], in[2])
			if got := shown(m); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if m.Clean() != (m.Conflicts() == 0) || m.Clean() && m.Text() != strings.ReplaceAll(c.want, "/", "\n") {
				t.Errorf("clean %v, %d conflicts, text %q", m.Clean(), m.Conflicts(), m.Text())
			}
		})
	}
}

func TestContestLeavesEveryChangeOpen(t *testing.T) {
	m := lines.Contest("a\nb\nc\nd\ne\n", "A\nb\nc\nd\nE\n", "a\nb\nC\nd\nE\n")
	if got, want := shown(m), "{A/|a/|a/}b/{c/|c/|C/}d/E/"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// checkMerge holds for all texts.
func checkMerge(t *testing.T, base, mine, theirs string) {
	t.Helper()
	m, contest := lines.Merge(base, mine, theirs), lines.Contest(base, mine, theirs)
	sides := map[string]func(lines.Region) string{
		mine:   func(r lines.Region) string { return r.Mine },
		theirs: func(r lines.Region) string { return r.Theirs },
	}
	for side, of := range sides {
		if got := contest.Resolve(of); got != side {
			t.Fatalf("decided all for %q, it is %q", side, got)
		}
	}
	// No change is dropped: what the sides changed is decided by who changed
	// it, and what both changed is a conflict.
	decided := contest.Resolve(func(r lines.Region) string {
		switch {
		case r.Mine == r.Base:
			return r.Theirs
		case r.Theirs == r.Base:
			return r.Mine
		}
		return shown(lines.Merged{r})
	})
	if got := m.Resolve(func(r lines.Region) string { return shown(lines.Merged{r}) }); got != decided {
		t.Fatalf("got %q, want %q", got, decided)
	}
	for _, r := range slices.Concat(m, contest) {
		if r.Conflict && r.Mine == r.Theirs || !r.Conflict && r.Text == "" {
			t.Fatalf("a region is %+v", r)
		}
	}
	mirrored := lines.Merge(base, theirs, mine)
	for i, r := range mirrored {
		mirrored[i].Mine, mirrored[i].Theirs = r.Theirs, r.Mine
	}
	if !slices.Equal(m, mirrored) {
		t.Fatalf("the other way round it is\n%s, and not\n%s", shown(mirrored), shown(m))
	}
	for _, alone := range []lines.Merged{lines.Merge(base, mine, base), lines.Merge(base, base, mine), lines.Merge(base, mine, mine)} {
		if !alone.Clean() || alone.Text() != mine {
			t.Fatalf("changed by one side only, or by both alike, it is\n%s", shown(alone))
		}
	}
	checkDiff(t, base, mine)
}

// checkDiff makes the hunks' changes.
func checkDiff(t *testing.T, from, to string) {
	t.Helper()
	a := strings.SplitAfter(from, "\n")
	var out strings.Builder
	at, added := 0, 0
	for _, h := range lines.Diff(from, to) {
		out.WriteString(strings.Join(a[at:h.From-1], ""))
		added += h.From - 1 - at
		if !slices.Equal(a[h.From-1:h.From-1+len(h.Removed)], h.Removed) || h.To != added+1 || len(h.Removed)+len(h.Added) == 0 {
			t.Fatalf("%q to %q: hunk %+v", from, to, h)
		}
		out.WriteString(strings.Join(h.Added, ""))
		at, added = h.From-1+len(h.Removed), added+len(h.Added)
	}
	if out.WriteString(strings.Join(a[at:], "")); out.String() != to {
		t.Fatalf("the diff leads from %q to %q, not to %q", from, out.String(), to)
	}
}

func TestMergeDropsNoChange(t *testing.T) {
	t.Parallel()
	t.Logf("-property-seed=%d", *propertySeed)
	r := rand.New(rand.NewPCG(*propertySeed, 3))
	for range 2000 {
		kinds := 1 + r.IntN(40)
		draw := func() string {
			var b strings.Builder
			for range r.IntN(30) {
				fmt.Fprintf(&b, "%d\n", r.IntN(kinds))
			}
			return cutSome(r, b.String())
		}
		checkMerge(t, draw(), draw(), draw())
	}
	d := &drawing{Rand: r}
	for range 2000 {
		base := d.base(d.IntN(24))
		checkMerge(t, letters(base), letters(d.edit(base)), letters(d.edit(base)))
	}
}

// Texts that have little or nothing in common end in conflicts, soon.
func TestMergeOfVeryDifferentTextsIsBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(*propertySeed, 4))
	const n = 5_000
	text := func(line func(i int) int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%020d\n", line(i))
		}
		return b.String()
	}
	base := text(func(i int) int { return i })
	p, q := r.Perm(n), r.Perm(n)
	for _, c := range []struct {
		name         string
		mine, theirs string
	}{
		{"nothing in common", text(func(i int) int { return n + i }), text(func(i int) int { return -i })},
		{"shuffled", text(func(i int) int { return p[i] }), text(func(i int) int { return q[i] })},
		{"turned round", text(func(i int) int { return n - i }), text(func(i int) int { return i * 7 % n })},
		{"few kinds of lines", text(func(i int) int { return p[i] % 20 }), text(func(i int) int { return q[i] % 20 })},
		{"one kind", strings.Repeat("\n", n), strings.Repeat("\n", n-5)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if m := lines.Merge(base, c.mine, c.theirs); m.Clean() {
				t.Errorf("merged to %d bytes", len(m.Text()))
			}
		})
	}
}

func TestUnified(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"equal", "a\n", "a\n", ""},
		{"from nothing", "", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"to nothing", "a\n", "", "@@ -1 +0,0 @@\n-a\n"},
		{"a change with context", "1\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\nx\n5\n6\n7\n", "@@ -2,5 +2,5 @@\n 2\n 3\n-4\n+x\n 5\n 6\n"},
		{"changes that share their context", "1\n2\n3\n4\n5\n6\n", "x\n2\n3\n4\n5\ny\n", "@@ -1,6 +1,6 @@\n-1\n+x\n 2\n 3\n 4\n 5\n-6\n+y\n"},
		{"changes apart", "1\n2\n3\n4\n5\n6\n7\n", "x\n2\n3\n4\n5\n6\ny\n", "@@ -1,3 +1,3 @@\n-1\n+x\n 2\n 3\n@@ -5,3 +5,3 @@\n 5\n 6\n-7\n+y\n"},
		{"the end of the last line", "a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := lines.Unified(c.from, c.to, 2); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

// A blank line within a rewritten part has not stayed: as git does, the part is
// taken as one change.
func TestFrequentLinesInARewrittenPartBelongToIt(t *testing.T) {
	paragraphs := func(word string) string {
		var b strings.Builder
		for i := range 100 {
			fmt.Fprintf(&b, "%s %d\n", word, i)
			if i%5 == 4 && i < 99 {
				b.WriteString("\n")
			}
		}
		return b.String()
	}
	if hunks := lines.Diff(paragraphs("old"), paragraphs("new")); len(hunks) != 1 {
		t.Errorf("got %d hunks", len(hunks))
	}
}

// FuzzMerge merges texts of anybody.
func FuzzMerge(f *testing.F) {
	f.Add("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n")
	f.Add("", "x", "x\n")
	f.Add("a\r\nb", "a\nb", "\n\n\n")
	f.Add("a\na\na\n", "a\na\n", "a\na\na\na\n")
	f.Fuzz(func(t *testing.T, base, mine, theirs string) { checkMerge(t, base, mine, theirs) })
}
