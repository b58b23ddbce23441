package draft

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/cmctl/pkg/types"
)

func shown(t *testing.T) Shown {
	t.Helper()
	doc, err := types.ParseDocument([]byte(`{"metadata":{"name":"flags","generation":12345678901234567890},"data":{"a":"<1>"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return Shown{Server: "http://127.0.0.1:8080", Namespace: "default", Name: "flags", Format: "yaml", Document: doc, Markers: 9}
}

func TestADraftIsFoundAgainWhole(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	d, err := New("flags.yaml", []byte("text"), shown(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Write([]byte("changed")); err != nil {
		t.Fatal(err)
	}
	again, err := Open(d.Path())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := again.Read(); err != nil || string(text) != "changed" {
		t.Errorf("the text is %q, %v", text, err)
	}
	want := shown(t)
	if !again.Shown.Document.Equal(want.Document) {
		t.Errorf("it was made from %v, want %v", again.Shown.Document, want.Document)
	}
	again.Shown.Document, want.Document = nil, nil
	if again.Shown.Server != want.Server || again.Shown.Markers != want.Markers || again.Shown.Name != want.Name {
		t.Errorf("%+v, want %+v", again.Shown, want)
	}
}

func TestNobodyElseReadsADraft(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	d, err := New("flags.yaml", []byte("text"), shown(t))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{d.Path(): 0o600, d.ShownPath(): 0o600, filepath.Dir(d.Path()): 0o700 | os.ModeDir} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
		}
	}
}

func TestRemoveLeavesNothingButWhatIsNotItsOwn(t *testing.T) {
	root := t.TempDir()
	t.Setenv("TMPDIR", root)
	d, err := New("flags.yaml", nil, shown(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.Path()+"~", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.Remove()
	if left, _ := os.ReadDir(root); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	d, err = New("flags.yaml", nil, shown(t))
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(filepath.Dir(d.Path()), "mine.yaml")
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if beside := d.Beside(); len(beside) != 1 || beside[0] != own {
		t.Errorf("beside the draft is %q, want %s", beside, own)
	}
	d.Remove()
	if beside := d.Beside(); len(beside) > 0 {
		t.Errorf("%q is beside a draft that has no folder of its own", beside)
	}
	if _, err := os.Stat(own); err != nil {
		t.Errorf("a file of the person's is gone: %v", err)
	}
}

func TestATextAloneIsNoDraft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flags.yaml")
	if _, err := Open(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want that there is no such file", err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err := Open(path); !errors.Is(err, ErrAlone) || d.Path() != path {
		t.Errorf("%v, want %v", err, ErrAlone)
	}
}

func TestALongNameKeepsItsExtension(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	d, err := New(strings.Repeat("k", 248)+".toml", nil, Shown{Name: strings.Repeat("n", 253)})
	if err != nil {
		t.Fatal(err)
	}
	if name := filepath.Base(d.Path()); len(name) != 200 || filepath.Ext(name) != ".toml" {
		t.Errorf("the file is %s", name)
	}
}
