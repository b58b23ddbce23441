package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// written is an archive of the entries.
func written(tb testing.TB, header string, entries ...string) []byte {
	tb.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, []byte(header))
	for _, e := range entries {
		err = errors.Join(err, w.Add([]byte(e)))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// read returns the header and all entries, or why they can't be had.
func read(r io.Reader) (header string, entries []string, err error) {
	a, err := NewReader(r)
	if err != nil {
		return "", nil, err
	}
	for {
		e, err := a.Next()
		if err == io.EOF {
			return string(a.Header()), entries, nil
		}
		if err != nil {
			return "", nil, err
		}
		entries = append(entries, string(e))
	}
}

// several entries over more than one block, among them an empty one and one that
// is longer than a block.
func several() []string {
	return []string{"first", "", strings.Repeat("long", blockSize/3), strings.Repeat("x", blockSize-1), "last"}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, entries := range [][]string{nil, {""}, {"one"}, several()} {
		header, got, err := read(iotest.HalfReader(bytes.NewReader(written(t, "header", entries...))))
		if err != nil || header != "header" || !slices.Equal(got, entries) {
			t.Errorf("%d entries: header %q, got %d, %v", len(entries), header, len(got), err)
		}
	}
}

// Wherever the file ends too early, that is noticed.
func TestACutFileIsNoticed(t *testing.T) {
	whole := written(t, "header", "a", "b", "c")
	for n := range whole {
		_, _, err := read(bytes.NewReader(whole[:n]))
		if n == 0 && !errors.Is(err, ErrForeign) || n > 0 && !errors.Is(err, ErrDamaged) {
			t.Errorf("cut at byte %d: %v", n, err)
		}
	}
	if _, _, err := read(bytes.NewReader(append(whole, 0))); !errors.Is(err, ErrDamaged) {
		t.Errorf("a byte behind the end: %v", err)
	}
}

// Whichever bit changes, that is noticed.
func TestAFlippedBitIsNoticed(t *testing.T) {
	whole := written(t, "header", "a", "b", "c")
	for i := range whole {
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[i] ^= 1 << bit
			if _, _, err := read(bytes.NewReader(b)); err == nil {
				t.Errorf("bit %d of byte %d: unnoticed", bit, i)
			} else if i >= len(magic) && !errors.Is(err, ErrDamaged) {
				t.Errorf("bit %d of byte %d: %v", bit, i, err)
			}
		}
	}
}

// Blocks that are whole, each by itself, are not where they belong.
func TestMovedBlocksAreNoticed(t *testing.T) {
	whole := written(t, "header", several()...)
	var blocks [][]byte
	for rest := whole[len(magic):]; len(rest) > 0; {
		n := 5 + int(rest[1])<<24 + int(rest[2])<<16 + int(rest[3])<<8 + int(rest[4]) + 4
		blocks = append(blocks, rest[:n])
		rest = rest[n:]
	}
	if len(blocks) < 5 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for name, order := range map[string][]int{
		"swapped":   {0, 2, 1, 3, 4},
		"left out":  {0, 1, 3, 4},
		"doubled":   {0, 1, 1, 2, 3, 4},
		"no header": {1, 2, 3, 4},
		"no end":    {0, 1, 2, 3},
	} {
		b := []byte(magic)
		for _, i := range order {
			b = append(b, blocks[i]...)
		}
		if _, _, err := read(bytes.NewReader(b)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsNotOurs(t *testing.T) {
	for content, want := range map[string]error{
		"":                                  ErrForeign,
		"apiVersion: v1\nkind: List\n":      ErrForeign,
		"cmserver backup 2\nsomething else": ErrNewer,
		"cmserver":                          ErrDamaged,
	} {
		if _, _, err := read(strings.NewReader(content)); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", content, err, want)
		}
	}
}

// A source or a target that fails is not taken for damage.
func TestErrorsOfTheSourceAndTheTarget(t *testing.T) {
	broken := errors.New("broken")
	whole := written(t, "header", several()...)
	for _, n := range []int{0, 10, 30, len(whole) - 1, len(whole)} {
		_, _, err := read(io.MultiReader(bytes.NewReader(whole[:n]), iotest.ErrReader(broken)))
		if !errors.Is(err, broken) || errors.Is(err, ErrDamaged) {
			t.Errorf("the source fails at byte %d: %v", n, err)
		}
	}
	for _, room := range []int{0, 20, 2000} {
		w, err := NewWriter(&full{room: room}, []byte("header"))
		for range 5 {
			if err == nil {
				err = w.Add([]byte(strings.Repeat("x", blockSize)))
			}
		}
		if !errors.Is(err, errFull) || !errors.Is(w.Close(), errFull) {
			t.Errorf("the target has room for %d bytes: %v", room, err)
		}
	}
}

var errFull = errors.New("full")

type full struct{ room int }

func (f *full) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestAnEntryThatIsTooLong(t *testing.T) {
	w, err := NewWriter(io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add(make([]byte, maxBlock/2+1)); err == nil {
		t.Error("was taken")
	}
}

// Any bytes may come as a backup: they are refused, or are exactly what a writer
// would write.
func FuzzReader(f *testing.F) {
	f.Add(written(f, "header", "a", "b"))
	f.Add(written(f, ""))
	f.Add([]byte(magic))
	f.Add([]byte(fmt.Sprintf("%sH\x0f\xff\xff\xff", magic)))
	f.Fuzz(func(t *testing.T, b []byte) {
		header, entries, err := read(bytes.NewReader(b))
		if err != nil {
			return
		}
		again, gotEntries, err := read(bytes.NewReader(written(t, header, entries...)))
		if err != nil || again != header || !slices.Equal(gotEntries, entries) {
			t.Errorf("read %q, %q; written and read again: %q, %q, %v", header, entries, again, gotEntries, err)
		}
	})
}
