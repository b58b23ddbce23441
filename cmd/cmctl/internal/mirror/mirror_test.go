package mirror_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"example.com/cmctl/cmd/cmctl/internal/mirror"
)

// writerVariable makes the test binary a process that writes versions to the
// folder it names until it is killed.
const writerVariable = "MIRROR_TEST_WRITER"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerVariable); path != "" {
		writeForever(path)
	}
	os.Exit(m.Run())
}

func data(pairs ...string) map[string][]byte {
	d := map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		d[pairs[i]] = []byte(pairs[i+1])
	}
	return d
}

func record(pairs ...string) mirror.Record {
	return mirror.Record{Server: "http://s", Namespace: "default", Name: "app", UID: "u", ResourceVersion: "1", Data: data(pairs...)}
}

func open(t *testing.T, path string) *mirror.Folder {
	t.Helper()
	f, err := mirror.Open(path, mirror.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func write(t *testing.T, f *mirror.Folder, r mirror.Record) {
	t.Helper()
	if changed, err := f.Write(r); err != nil || !changed {
		t.Fatalf("changed %t, %v", changed, err)
	}
}

// shown are the files that a program finds which knows nothing of links.
func shown(t *testing.T, path string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		value, err := os.ReadFile(filepath.Join(path, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(value)
	}
	return files
}

func wantFiles(t *testing.T, path string, want map[string][]byte) {
	t.Helper()
	got := shown(t, path)
	if !maps.EqualFunc(got, want, func(a string, b []byte) bool { return a == string(b) }) {
		t.Errorf("the folder shows %q, want %q", got, want)
	}
}

func TestAFolderFollowsTheVersions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "app")
	f := open(t, path)
	for _, d := range []map[string][]byte{
		data("a", "1", "b", "2"),
		data("a", "1\x00\xff", "c.yaml", ""),
		data(),
		data("b", "back"),
	} {
		r := record()
		r.Data = d
		write(t, f, r)
		wantFiles(t, path, d)
		got, err := f.Record()
		if err != nil || len(mirror.ChangedKeys(got.Data, d)) > 0 || !got.SameObject(r) {
			t.Errorf("the record says %v, %v", got, err)
		}
	}
	left, err := filepath.Glob(path + "/..cmctl-*")
	if err != nil || len(left) != 1 {
		t.Errorf("old versions are left behind: %v", left)
	}
}

// A version in which other things than data changed switches nothing: no
// program reloads for it.
func TestEqualDataIsNotSwitched(t *testing.T) {
	path := t.TempDir()
	f := open(t, path)
	write(t, f, record("a", "1"))
	before, _ := os.Readlink(filepath.Join(path, "..data"))
	next := record("a", "1")
	next.ResourceVersion = "2"
	if changed, err := f.Write(next); changed || err != nil {
		t.Errorf("changed %t, %v", changed, err)
	}
	if after, _ := os.Readlink(filepath.Join(path, "..data")); after != before {
		t.Errorf("..data went from %s to %s", before, after)
	}
	if r, err := f.Record(); err != nil || r.ResourceVersion != "2" {
		t.Errorf("the record says %v, %v", r, err)
	}
}

func TestWhatWasEditedInTheFolderIsNotOverwritten(t *testing.T) {
	for _, c := range []struct {
		name   string
		edit   func(t *testing.T, path string)
		edited []string
	}{
		{"in place", func(t *testing.T, path string) { put(t, path, "mine") }, []string{"a"}},
		{"by a file in the link's stead", func(t *testing.T, path string) { replace(t, path, "mine") }, []string{"a"}},
		{"removed", func(t *testing.T, path string) { remove(t, path) }, []string{"a"}},
		{"to what comes anyway", func(t *testing.T, path string) { replace(t, path, "2") }, nil},
		{"a file of another name", func(t *testing.T, path string) { put(t, filepath.Dir(path)+"/notes", "x") }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := t.TempDir()
			f := open(t, path)
			write(t, f, record("a", "1", "b", "1"))
			c.edit(t, filepath.Join(path, "a"))
			before := shown(t, path)
			_, err := f.Write(record("a", "2", "b", "2"))
			var edited *mirror.EditedError
			if len(c.edited) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				if got := shown(t, path); got["a"] != "2" || got["b"] != "2" {
					t.Errorf("the folder shows %q", got)
				}
				return
			}
			if !errors.As(err, &edited) || !slices.Equal(edited.Keys, c.edited) {
				t.Fatalf("Write: %v", err)
			}
			if after := shown(t, path); !maps.Equal(before, after) {
				t.Errorf("the folder went from %q to %q", before, after)
			}
			if _, err := f.Overwrite(record("a", "2", "b", "2")); err != nil {
				t.Fatal(err)
			}
			wantFiles(t, path, data("a", "2", "b", "2"))
		})
	}
}

func put(t *testing.T, path, value string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// replace is how many editors save: a new file, renamed over the old one.
func replace(t *testing.T, path, value string) {
	t.Helper()
	put(t, path+".new", value)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// After the files were pushed and recorded, the version that an editor's file stood
// in front of is nobody's late work.
func TestARecordedEditIsNotTakenForALateOne(t *testing.T) {
	path := t.TempDir()
	f := open(t, path)
	write(t, f, record("a", "1", "b", "1"))
	replace(t, filepath.Join(path, "a"), "mine")
	if err := f.Keep(record("a", "mine", "b", "1")); err != nil {
		t.Fatal(err)
	}
	write(t, f, record("a", "mine", "b", "theirs"))
	wantFiles(t, path, data("a", "mine", "b", "theirs"))
}

// What is saved while a version is being written is not overwritten either: by
// renaming, as most editors do, and in place, as others do.
func TestWhatIsSavedMeanwhileStays(t *testing.T) {
	for name, save := range map[string]func(t *testing.T, path string){
		"by renaming": func(t *testing.T, path string) { replace(t, path, "mine") },
		"in place":    func(t *testing.T, path string) { put(t, path, "mine") },
	} {
		for _, key := range []string{"stays", "changes", "goes"} {
			t.Run(name+" "+key, func(t *testing.T) {
				path := t.TempDir()
				f := open(t, path)
				write(t, f, record("stays", "1", "changes", "1", "goes", "1"))
				big := record("stays", "1", "changes", "2")
				for i := range 60 {
					big.Data[fmt.Sprintf("more-%d", i)] = []byte("x")
				}
				saved := make(chan struct{})
				go func() {
					defer close(saved)
					// Once the next version is being made.
					for {
						if made, _ := filepath.Glob(path + "/..cmctl-2*"); len(made) > 1 {
							break
						}
					}
					save(t, filepath.Join(path, key))
				}()
				_, err := f.Write(big)
				<-saved
				var edited *mirror.EditedError
				if got := shown(t, path)[key]; got != "mine" {
					// Saved after the write had ended, in a file that it had removed.
					t.Fatalf("%s is %q, Write: %v", key, got, err)
				}
				if key == "goes" {
					return // a file that no version asks for is nobody's concern
				}
				if _, again := f.Write(big); !errors.As(errors.Join(err, again), &edited) || !slices.Contains(edited.Keys, key) {
					t.Errorf("Write: %v, and again: %v", err, again)
				}
			})
		}
	}
}

func TestWhatIsNotOursIsNotTouched(t *testing.T) {
	t.Run("a file that no sync made", func(t *testing.T) {
		path := t.TempDir()
		put(t, filepath.Join(path, "a"), "precious")
		_, err := open(t, path).Write(record("a", "1"))
		if !errors.As(err, new(*mirror.ForeignError)) {
			t.Errorf("Write: %v", err)
		}
		wantFiles(t, path, data("a", "precious"))
	})
	t.Run("a mount of the kubelet's", func(t *testing.T) {
		path := t.TempDir()
		if err := os.Mkdir(filepath.Join(path, "..2026_01_01"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("..2026_01_01", filepath.Join(path, "..data")); err != nil {
			t.Fatal(err)
		}
		f := open(t, path)
		for _, write := range []func(mirror.Record) (bool, error){f.Write, f.Overwrite} {
			if _, err := write(record("a", "1")); !errors.As(err, new(*mirror.ForeignError)) {
				t.Errorf("Write: %v", err)
			}
		}
		if _, err := os.Stat(filepath.Join(path, "..2026_01_01")); err != nil {
			t.Error(err)
		}
	})
	t.Run("a folder that another process keeps", func(t *testing.T) {
		path := t.TempDir()
		open(t, path)
		if _, err := mirror.Open(path, mirror.Options{}); !errors.As(err, new(*mirror.BusyError)) {
			t.Errorf("Open: %v", err)
		}
	})
}

func TestFilesAreTakenFromAPlainFolder(t *testing.T) {
	path := t.TempDir()
	for _, name := range []string{"app.yaml", ".env", ".app.yaml.swp", "app.yaml~", ".#app.yaml"} {
		put(t, filepath.Join(path, name), "x")
	}
	if err := os.Mkdir(filepath.Join(path, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	f := open(t, path)
	files, skipped, err := f.Files()
	if err != nil || len(mirror.ChangedKeys(files, data("app.yaml", "x", ".env", "x"))) > 0 || len(skipped) != 4 {
		t.Errorf("taken %q, skipped %q, %v", files, skipped, err)
	}
	if r, err := f.Record(); r != nil || err != nil {
		t.Errorf("a record before the first sync: %v, %v", r, err)
	}
	if err := f.Keep(record("app.yaml", "x")); err != nil {
		t.Fatal(err)
	}
	if r, err := f.Record(); err != nil || string(r.Data["app.yaml"]) != "x" {
		t.Errorf("the record says %v, %v", r, err)
	}
	info, err := os.Stat(filepath.Join(path, "..cmctl.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the record's mode is %v, %v", info.Mode(), err)
	}
}

func TestTheModeIsTheOneAskedFor(t *testing.T) {
	path := t.TempDir()
	f, err := mirror.Open(path, mirror.Options{Mode: 0o640})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write(t, f, record("a", "1"))
	info, err := os.Stat(filepath.Join(path, "a"))
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// whole are the contents of version n: every file says n.
func whole(n int) map[string][]byte {
	d := map[string][]byte{}
	for i := range 6 {
		d[fmt.Sprintf("key-%d", (n+i)%8)] = []byte(strings.Repeat(fmt.Sprintln(n), 200))
	}
	return d
}

// generation reads all files that one look at ..data gives, and tells which
// version they are of; ok is false if it was switched meanwhile.
func generation(path string) (n string, ok bool, err error) {
	target, err := os.Readlink(filepath.Join(path, "..data"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	entries, err := os.ReadDir(filepath.Join(path, target))
	if err != nil {
		return "", false, nil
	}
	files := 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		value, err := os.ReadFile(filepath.Join(path, target, e.Name()))
		if err != nil {
			return "", false, nil
		}
		line, _, _ := strings.Cut(string(value), "\n")
		if n == "" {
			n = line
		}
		if string(value) != strings.Repeat(n+"\n", 200) {
			return "", false, fmt.Errorf("%s is not of version %s", e.Name(), n)
		}
		files++
	}
	if files != 6 {
		// A version on its way out: it is no longer the one that ..data names.
		if now, _ := os.Readlink(filepath.Join(path, "..data")); now != target {
			return "", false, nil
		}
		return "", false, fmt.Errorf("%d files of 6", files)
	}
	return n, true, nil
}

// Whoever reads while versions are switched sees one or another, whole.
func TestReadersNeverSeeAMix(t *testing.T) {
	path := t.TempDir()
	f := open(t, path)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for seen := 0; ; {
				_, ok, err := generation(path)
				if err != nil {
					t.Error(err)
					return
				}
				if ok {
					seen++
				}
				select {
				case <-done:
					if seen == 0 {
						t.Error("a reader saw no version at all")
					}
					return
				default:
				}
			}
		})
	}
	for n := range 40 {
		write(t, f, mirror.Record{Name: "app", Data: whole(n)})
	}
	close(done)
	readers.Wait()
}

// A process killed at any moment leaves a whole version, and the next one goes
// on from there and leaves nothing of the old ones.
func TestAKilledMirrorLeavesAWholeVersion(t *testing.T) {
	path := t.TempDir()
	for kill := range 12 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), writerVariable+"="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Let it write a few versions, another number each time.
		lines := bufio.NewScanner(out)
		for range 1 + kill%4 {
			if !lines.Scan() {
				t.Fatal("the writer ended by itself")
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		n, ok, err := generation(path)
		if err != nil || !ok {
			t.Fatalf("after kill %d: whole %t, %v", kill, ok, err)
		}
		f := open(t, path)
		var version int
		if _, err := fmt.Sscan(n, &version); err != nil {
			t.Fatal(err)
		}
		wantFiles(t, path, whole(version))
		if left, _ := filepath.Glob(path + "/..cmctl-*"); len(left) != 1 {
			t.Errorf("left behind: %v", left)
		}
		f.Close()
	}
}

func writeForever(path string) {
	f, err := mirror.Open(path, mirror.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for n := os.Getpid() * 1000; ; n++ {
		if _, err := f.Write(mirror.Record{Name: "app", Data: whole(n)}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(n)
	}
}

// A process that is killed between the switch and the telling leaves a folder
// that says what is left to tell.
func TestWhatNobodyWasToldIsRemembered(t *testing.T) {
	path := t.TempDir()
	untold := func(want ...string) {
		t.Helper()
		f := open(t, path)
		defer f.Close()
		r, err := f.Record()
		if err != nil || !slices.Equal(r.Untold, want) || (r.Untold == nil) != (want == nil) {
			t.Errorf("untold are %q (%v), want %q", r.Untold, err, want)
		}
	}
	sync := func(tell bool, r mirror.Record) {
		t.Helper()
		f, err := mirror.Open(path, mirror.Options{Tell: tell})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	sync(false, record("a", "1"))
	untold()
	sync(true, record("a", "1"))
	untold()
	sync(true, record("a", "2"))
	untold("a")
	sync(true, record("a", "2"))
	untold("a")
	sync(false, record("a", "2", "b", "1"))
	untold("a", "b")
	f := open(t, path)
	if err := f.Told(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	untold()
}
