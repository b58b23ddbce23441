package settings_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"example.com/cmctl/cmd/internal/settings"
)

// write makes a settings file with that text and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRead(t *testing.T) {
	path := write(t, `
namespace: team-a
certificate-authority: ca.pem
field-manager:
current-context: lab
contexts:
- name: lab
  server: http://127.0.0.1:8080
  token-file: secrets/token
- {name: prod, kubeconfig: /etc/kube, context: eu, namespace: shop}
`)
	t.Setenv("HOME", "/home/me")
	f, err := settings.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(path)
	if f.Current != "lab" || f.Plain["namespace"] != "team-a" || f.Plain["certificate-authority"] != folder+"/ca.pem" {
		t.Errorf("got %+v", f)
	}
	if _, ok := f.Plain["field-manager"]; ok {
		t.Error("a setting without a value counts as given")
	}
	lab, ok := f.Context("lab")
	if !ok || lab.TokenFile != folder+"/secrets/token" || f.Secret() {
		t.Errorf("got %+v", lab)
	}
	prod, ok := f.Context("prod")
	if !ok || prod.Kubeconfig != "/etc/kube" || prod.KubeContext != "eu" || prod.Namespace != "shop" {
		t.Errorf("got %+v", prod)
	}
	if _, ok := f.Context("nope"); ok {
		t.Error("found a context that isn't there")
	}
}

func TestDecode(t *testing.T) {
	f, err := settings.Read(write(t, "checks:\n- {keys: ['*.Yaml'], command: lint}\nnamespace: a\n"))
	if err != nil {
		t.Fatal(err)
	}
	var checks []struct {
		Keys    []string
		Command string
	}
	if err := f.Decode("checks", &checks); err != nil || fmt.Sprint(checks) != "[{[*.Yaml] lint}]" {
		t.Errorf("got %v, %v", checks, err)
	}
	if err := f.Decode("nope", &checks); err != nil || len(checks) != 1 {
		t.Errorf("a setting that isn't there: %v, %v", checks, err)
	}
	var other []struct{ Keys []string }
	for _, setting := range []string{"checks", "namespace"} {
		if err := f.Decode(setting, &other); err == nil {
			t.Errorf("%s was read into what it doesn't fit", setting)
		}
	}
}

func TestAPathMayBeginAtHome(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	f, err := settings.Read(write(t, "kubeconfig: ~/.kube/config\n"))
	if err != nil || f.Plain["kubeconfig"] != "/home/me/.kube/config" {
		t.Errorf("got %v, %v", f, err)
	}
}

func TestReadRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"what is no YAML":               {"a: [", "line 1"},
		"a list":                        {"- a", "line 1: a list stands where a map belongs"},
		"contexts that are no list":     {"contexts: {a: 1}", "line 1: a map stands where a list belongs"},
		"a context that is a number":    {"contexts: [1]", "line 1: a number stands where a map belongs"},
		"a namespace that is a list":    {"contexts: [{name: a, server: x, namespace: [x]}]", "line 1: a list stands where a string belongs"},
		"a key twice":                   {"namespace: a\nnamespace: b\n", "already defined"},
		"two documents":                 {"namespace: a\n---\nnamespace: b\n", "one YAML document"},
		"a context without a name":      {"contexts: [{server: http://x}]", `"" can't be the name`},
		"a name with a line end":        {"contexts: [{name: \"a\\nb\", server: http://x}]", "can't be the name"},
		"a context without a server":    {"contexts: [{name: a}]", "must have one of"},
		"a context with two":            {"contexts: [{name: a, server: x, in-cluster: true}]", "must have one of"},
		"a context of no kubeconfig":    {"contexts: [{name: a, server: x, context: y}]", "without the kubeconfig"},
		"two contexts of a name":        {"contexts: [{name: a, server: x}, {name: a, server: y}]", "two contexts"},
		"a misspelt field of a context": {"contexts: [{name: a, sever: x}]", "field sever is not known there"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := settings.Read(write(t, c.text))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if err != nil && strings.Contains(err.Error(), "settings.") {
				t.Errorf("%v speaks of Go types", err)
			}
		})
	}
	if _, err := settings.Read(filepath.Join(t.TempDir(), "no-such-file")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// An edit changes what it is for, and nothing else of the text.
func TestEdit(t *testing.T) {
	const before = `# where I work
namespace: team-a # mine
unknown: [1, 2] # of a newer cmctl
contexts:
  # the one under the desk
  - name: lab
    server: http://127.0.0.1:8080 # no TLS
    token: secret
`
	for name, c := range map[string]struct {
		before string
		edit   func(*settings.Document) error
		want   string
	}{
		"a value changes": {before, func(d *settings.Document) error { return d.Set("namespace", "team-b") },
			strings.Replace(before, "team-a", "team-b", 1)},
		"a setting is added": {before, func(d *settings.Document) error { return d.Set("max-attempts", 9) },
			before + "max-attempts: 9\n"},
		"a setting goes": {before, func(d *settings.Document) error { d.Unset("unknown"); return nil },
			strings.Replace(before, "unknown: [1, 2] # of a newer cmctl\n", "", 1)},
		"text that would be read as a number": {"", func(d *settings.Document) error { return d.Set("field-manager", "42") },
			"field-manager: \"42\"\n"},
		"a file of comments alone": {"# nothing yet\n", func(d *settings.Document) error { return d.Set("namespace", "a") },
			"# nothing yet\n\nnamespace: a\n"},
		"a file in braces": {"{}\n", func(d *settings.Document) error { return d.Set("namespace", "a") },
			"namespace: a\n"},
		"the comment above a setting that goes stays": {"# mine\na: 1\n# b\nb: 2\n", func(d *settings.Document) error { d.Unset("a"); d.Unset("b"); return d.Set("c", 3) },
			"c: 3\n\n# mine\n# b\n"},
		"the comment of the file stays": {"# mine\na: 1\nb: 2\n", func(d *settings.Document) error { d.Unset("a"); return nil },
			"# mine\nb: 2\n"},
		"the last setting goes": {"namespace: a\n", func(d *settings.Document) error { d.Unset("namespace"); return nil }, ""},
		"a context changes": {before, func(d *settings.Document) error {
			return d.SetContext(settings.Context{Name: "lab", Server: "http://127.0.0.1:9090", Namespace: "x"})
		}, strings.NewReplacer("8080", "9090", "    token: secret\n", "    namespace: x\n").Replace(before)},
		"a context is added": {"contexts: []\n", func(d *settings.Document) error {
			return d.SetContext(settings.Context{Name: "lab", Server: "http://x"})
		}, "contexts:\n  - name: lab\n    server: http://x\n"},
		"the last context goes": {"namespace: a\ncontexts: [{name: lab, server: x}]\n", func(d *settings.Document) error {
			d.DeleteContext("lab")
			return nil
		}, "namespace: a\n"},
		"a context gets another name, also as the current one": {"contexts: [{name: a, server: x}]\ncurrent-context: a\n",
			func(d *settings.Document) error { _, err := d.RenameContext("a", "b"); return err },
			"contexts: [{name: b, server: x}]\ncurrent-context: b\n"},
		"tokens are masked": {before, func(d *settings.Document) error { return d.Mask("***") },
			strings.Replace(before, "secret", "'***'", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, c.before)
			if err := settings.Edit(path, c.edit); err != nil {
				t.Fatal(err)
			}
			if got := readText(t, path); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestAnEditThatFailsChangesNothing(t *testing.T) {
	const text = "namespace: a\ncontexts: [{name: a, server: x}, {name: b, server: y}]\n"
	for name, edit := range map[string]func(*settings.Document) error{
		"by its own wish":      func(d *settings.Document) error { d.Unset("namespace"); return errors.New("no") },
		"to a name that is":    func(d *settings.Document) error { _, err := d.RenameContext("a", "b"); return err },
		"without a server":     func(d *settings.Document) error { return d.SetContext(settings.Context{Name: "c"}) },
		"to what is no file":   func(d *settings.Document) error { return d.Set("contexts", "none") },
		"by taking contexts a": func(d *settings.Document) error { return d.Set("contexts", []int{1}) },
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, text)
			if err := settings.Edit(path, edit); err == nil {
				t.Error("it was done")
			}
			if got := readText(t, path); got != text {
				t.Errorf("the file is now\n%s", got)
			}
			if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) > 2 { // the file and its lock
				t.Errorf("left behind: %v, %v", files, err)
			}
		})
	}
}

func TestAnEditedFileIsForItsOwnerAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "config.yaml")
	set := func(d *settings.Document) error { return d.Set("token", "secret") }
	if err := settings.Edit(path, set); err != nil {
		t.Fatal(err)
	}
	if settings.Exposed(path) {
		t.Error("others may read a new file")
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if !settings.Exposed(path) {
		t.Error("nobody else may read a file that all may read")
	}
	if err := settings.Edit(path, set); err != nil || settings.Exposed(path) {
		t.Errorf("others may still read it; %v", err)
	}
}

func TestALinkStaysOne(t *testing.T) {
	file := write(t, "namespace: a\n")
	link := filepath.Join(t.TempDir(), "link.yaml")
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err)
	}
	if err := settings.Edit(link, func(d *settings.Document) error { return d.Set("namespace", "b") }); err != nil {
		t.Fatal(err)
	}
	if got := readText(t, file); got != "namespace: b\n" {
		t.Errorf("the file is %q", got)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info, err)
	}
}

func TestEditsAtTheSameTimeAreAllKept(t *testing.T) {
	path := write(t, "# mine\n")
	const writers, edits = 16, 8
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for j := range edits {
				err := settings.Edit(path, func(d *settings.Document) error {
					return d.SetContext(settings.Context{Name: fmt.Sprintf("c-%d-%d", i, j), Server: "http://x"})
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	f, err := settings.Read(path)
	if err != nil || len(f.Contexts) != writers*edits {
		t.Fatalf("%d of %d contexts are there; %v", len(f.Contexts), writers*edits, err)
	}
}

// An editor takes no lock: what it saved while the edit was made is kept too.
func TestAnEditMeetsAnEditor(t *testing.T) {
	path := write(t, "namespace: a\n")
	rounds := 0
	err := settings.Edit(path, func(d *settings.Document) error {
		if rounds++; rounds == 1 {
			if err := os.WriteFile(path, []byte("namespace: a\nfield-manager: me\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return d.Set("namespace", "b")
	})
	if got := readText(t, path); err != nil || got != "namespace: b\nfield-manager: me\n" {
		t.Errorf("got %q, %v", got, err)
	}
	err = settings.Edit(path, func(d *settings.Document) error {
		rounds++
		if err := os.WriteFile(path, fmt.Appendf(nil, "max-attempts: %d\n", rounds), 0o600); err != nil {
			t.Fatal(err)
		}
		return d.Set("namespace", "c")
	})
	if err == nil || strings.Contains(readText(t, path), "namespace") {
		t.Errorf("an edit that never met a quiet file: %v", err)
	}
}

// Whatever the file says, what an edit does not name means the same afterwards,
// or nothing is written.
func FuzzEdit(f *testing.F) {
	f.Add("a: 1\n# c\nb: {c: [d, e]}\n")
	f.Add("contexts:\n- name: a\n  server: x\n")
	f.Add("a: |\n  text\n   more\nb: &x 1\nc: *x\n")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := settings.Parse([]byte(text), "/")
		if err != nil {
			return
		}
		before, err := d.File()
		if err != nil {
			return
		}
		if err := d.Set("namespace", "n"); err != nil {
			t.Fatal(err)
		}
		after, err := d.File()
		if err != nil {
			return
		}
		before.Plain["namespace"] = "n"
		if fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("before %v\nafter  %v", before, after)
		}
	})
}

// A program that was killed before the swap leaves a file with tokens in it; the
// next one removes it, and nothing else.
func TestLeftoversAreRemoved(t *testing.T) {
	path := write(t, "namespace: a\n")
	for _, name := range []string{path + ".new-12345", path + ".new-mine", path + ".bak"} {
		if err := os.WriteFile(name, []byte("token: secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := settings.Edit(path, func(*settings.Document) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + ".new-12345"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	readText(t, path+".new-mine")
	readText(t, path+".bak")
}

// Several servers stand in the file as a list, or with commas.
func TestServersAsAList(t *testing.T) {
	f, err := settings.Read(write(t, `
server: [http://a.example, http://b.example]
contexts:
- name: lab
  server:
  - http://a.example
  - http://b.example
- name: shop
  server: http://c.example,http://d.example
`))
	if err != nil {
		t.Fatal(err)
	}
	lab, _ := f.Context("lab")
	shop, _ := f.Context("shop")
	if f.Plain["server"] != "http://a.example,http://b.example" || lab.Server != "http://a.example,http://b.example" || shop.Server != "http://c.example,http://d.example" {
		t.Errorf("got %v, %v, %v", f.Plain["server"], lab.Server, shop.Server)
	}
	for _, text := range []string{
		"contexts: [{name: lab, server: {a: b}}]",
		"contexts: [{name: lab, server: [[a]]}]",
		"contexts: [{name: lab, server: []}]",
	} {
		if f, err := settings.Read(write(t, text)); err == nil {
			t.Errorf("%s passes for %+v", text, f)
		}
	}
	path := write(t, "contexts:\n- name: lab\n  server: [http://a.example, http://b.example] # ours\n")
	err = settings.Edit(path, func(d *settings.Document) error {
		lab.Namespace = "team-a"
		return d.SetContext(lab)
	})
	if text := readText(t, path); err != nil || !strings.Contains(text, "server: http://a.example,http://b.example # ours\n") {
		t.Errorf("got %v, %s", err, text)
	}
}
