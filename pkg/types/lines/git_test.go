package lines_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/cmctl/pkg/types/lines"
)

var propertySeed = flag.Uint64("property-seed", rand.Uint64(), "seed of the property tests")

// git merges with the real git. conflicts is what it exits with.
type git struct {
	dir string
}

func newGit(t *testing.T) git {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed: nothing to compare with")
	}
	return git{t.TempDir()}
}

func (g git) merge(t *testing.T, base, mine, theirs string, options ...string) (text string, conflicts int) {
	t.Helper()
	args := append([]string{"merge-file", "-p", "-q", "-L", "mine", "-L", "base", "-L", "theirs"}, options...)
	for name, text := range map[string]string{"base": base, "mine": mine, "theirs": theirs} {
		if err := os.WriteFile(filepath.Join(g.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("git", append(args, "mine", "base", "theirs")...)
	cmd.Dir = g.dir
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() < 128 {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}

// withMarkers shows conflicts as git merge-file --diff3 does.
func withMarkers(m lines.Merged) string {
	ended := func(text string) string {
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		return text
	}
	return m.Resolve(func(r lines.Region) string {
		return "<<<<<<< mine\n" + ended(r.Mine) + "||||||| base\n" + ended(r.Base) + "=======\n" + ended(r.Theirs) + ">>>>>>> theirs\n"
	})
}

// cutSome takes the last line feed off some texts.
func cutSome(r *rand.Rand, text string) string {
	if r.IntN(4) == 0 {
		return strings.TrimSuffix(text, "\n")
	}
	return text
}

// letters writes a line for each number.
func letters(numbers []int) string {
	var b strings.Builder
	for _, n := range numbers {
		fmt.Fprintf(&b, "line %d\n", n)
	}
	return b.String()
}

// drawing draws the lines of a base and of an edited copy without repeating one:
// lines are removed, moved and added.
type drawing struct {
	*rand.Rand
	next int
}

func (d *drawing) base(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	d.next = n
	return out
}

func (d *drawing) edit(base []int) []int {
	out := append([]int{}, base...)
	for range d.IntN(5) {
		at := d.IntN(len(out) + 1)
		run := min(1+d.IntN(3), len(out)-at)
		moved := append([]int{}, out[at:at+run]...)
		switch d.IntN(5) {
		case 0:
			out = append(out[:at:at], out[at+run:]...)
		case 1:
			out = append(out[:at:at], out[at+run:]...)
			to := d.IntN(len(out) + 1)
			out = append(out[:to:to], append(moved, out[to:]...)...)
		default:
			removed := run * d.IntN(2)
			d.next++
			out = append(out[:at:at], append([]int{d.next}, out[at+removed:]...)...)
		}
	}
	return out
}

// rounds is how many cases are drawn. Each starts git twice.
const rounds = 200

// With distinct lines the result is git's, and so are the conflicts.
func TestMergeOfDistinctLinesIsThatOfGit(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	t.Logf("-property-seed=%d", *propertySeed)
	d := &drawing{Rand: rand.New(rand.NewPCG(*propertySeed, 1))}
	clean := 0
	for range rounds {
		base := d.base(d.IntN(24))
		a, b, c := cutSome(d.Rand, letters(base)), cutSome(d.Rand, letters(d.edit(base))), cutSome(d.Rand, letters(d.edit(base)))
		m := lines.Merge(a, b, c)
		if m.Clean() {
			clean++
		}
		want, conflicts := g.merge(t, a, b, c, "--diff3")
		if got := withMarkers(m); got != want || m.Conflicts() != conflicts {
			t.Fatalf("base\n%smine\n%stheirs\n%sgot\n%s%d conflicts, git\n%s%d conflicts", a, b, c, got, m.Conflicts(), want, conflicts)
		}
	}
	if clean == 0 || clean == rounds {
		t.Errorf("%d of %d merges were clean: they show nothing", clean, rounds)
	}
}

// repeating draws a text of few kinds of lines, and two edited copies that have
// some new ones too.
func repeating(r *rand.Rand) (base, mine, theirs string) {
	kinds := 1 + r.IntN(20)
	fresh := r.IntN(4)
	draw := func(n, fresh int) []int {
		out := make([]int, n)
		for i := range out {
			if out[i] = r.IntN(kinds); r.IntN(8) < fresh {
				out[i] = 1000 + r.IntN(1000)
			}
		}
		return out
	}
	edit := func(base []int) []int {
		out := append([]int{}, base...)
		for range 1 + r.IntN(4) {
			at := r.IntN(len(out) + 1)
			gone := min(r.IntN(4), len(out)-at)
			out = append(out[:at:at], append(draw(r.IntN(4), 2*fresh), out[at+gone:]...)...)
		}
		return out
	}
	all := draw(r.IntN(80), fresh)
	return cutSome(r, letters(all)), cutSome(r, letters(edit(all))), cutSome(r, letters(edit(all)))
}

// With repeated lines we may find more conflicts than git, and never fewer.
func TestMergeOfRepeatedLinesIsNeverBolderThanGit(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	t.Logf("-property-seed=%d", *propertySeed)
	r := rand.New(rand.NewPCG(*propertySeed, 2))
	clean, more := 0, 0
	for range rounds {
		a, b, c := repeating(r)
		m := lines.Merge(a, b, c)
		want, conflicts := g.merge(t, a, b, c)
		switch {
		case m.Clean() && conflicts > 0:
			t.Fatalf("base\n%smine\n%stheirs\n%smerged to\n%sby git to\n%s", a, b, c, m.Text(), want)
		case m.Clean() && m.Text() != want:
			t.Fatalf("base\n%smine\n%stheirs\n%smerged to\n%sby git to\n%s", a, b, c, m.Text(), want)
		case m.Clean():
			clean++
		case conflicts == 0:
			more++
		}
	}
	t.Logf("%d of %d clean, %d that only git merges", clean, rounds, more)
	if clean == 0 || clean == rounds {
		t.Errorf("%d of %d merges were clean: they show nothing", clean, rounds)
	}
}

var sectionHeading = regexp.MustCompile(`(?m)^(@@ .* @@).*$`)

func (g git) diff(t *testing.T, from, to string, context int) string {
	t.Helper()
	for name, text := range map[string]string{"from": from, "to": to} {
		if err := os.WriteFile(filepath.Join(g.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("git", "diff", "--no-index", "--no-color", "--no-indent-heuristic", "--diff-algorithm=myers", fmt.Sprintf("-U%d", context), "from", "to")
	cmd.Dir = g.dir
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatal(err)
	}
	_, parts, _ := strings.Cut(string(out), "\n@@")
	if parts == "" {
		return ""
	}
	return sectionHeading.ReplaceAllString("@@"+parts, "$1")
}

// The diff is git's, so that what counts for a change in a merge does too.
func TestUnifiedIsThatOfGit(t *testing.T) {
	t.Parallel()
	g := newGit(t)
	t.Logf("-property-seed=%d", *propertySeed)
	r := rand.New(rand.NewPCG(*propertySeed, 5))
	for range rounds {
		from, to, _ := repeating(r)
		context := r.IntN(4)
		if got, want := lines.Unified(from, to, context), g.diff(t, from, to, context); got != want {
			t.Fatalf("from\n%sto\n%sgot\n%sgit\n%s", from, to, got, want)
		}
	}
}
