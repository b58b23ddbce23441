package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/archive"
	"example.com/cmctl/pkg/server/store/local"
)

// invoke runs a command of the program to its end.
func invoke(t *testing.T, stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	root := rootCommand(streams{out: &out, err: &errs})
	root.SetArgs(args)
	root.SetIn(stdin)
	err := root.ExecuteContext(t.Context())
	if err != nil {
		fmt.Fprintln(&errs, err)
	}
	return exitCode(err), out.String(), errs.String()
}

// must runs a command that succeeds, and returns what it says on stderr.
func must(t *testing.T, args ...string) string {
	t.Helper()
	code, _, said := invoke(t, nil, args...)
	if code != 0 {
		t.Fatalf("cmserver %v ended with %d: %s", args, code, said)
	}
	return said
}

func (p *program) must(method, path, body string, want int) (version string) {
	p.t.Helper()
	code, version, err := p.send(method, path, body)
	if err != nil || code != want {
		p.t.Fatalf("%s %s: got %d, want %d; %v", method, path, code, want, err)
	}
	return version
}

const flags = `{"metadata":{"name":"flags"%s},"data":{"mode":"%s"}}`

// at is a member of the metadata that names a version.
func at(version string) string { return `,"resourceVersion":"` + version + `"` }

// A backup is taken from a server that goes on. What comes back is what was there
// at the backup; what clients know from later meets conflicts and 410, and is
// never handed out again.
func TestBackupAndRestore(t *testing.T) {
	dir, again, file := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "again"), filepath.Join(t.TempDir(), "file")
	p := launch(t, "--data-dir", dir)
	kept := p.must("POST", collection, fmt.Sprintf(flags, "", "before"), 201)
	p.must("POST", collection, `{"metadata":{"name":"gone"}}`, 201)
	p.must("DELETE", collection+"/gone", "", 200)
	said := must(t, "backup", "--data-dir", dir, file)
	if !strings.Contains(said, " in 6 versions") || !strings.Contains(said, file) {
		t.Errorf("said: %s", said)
	}
	lost := p.must("PUT", collection+"/flags", fmt.Sprintf(flags, at(kept), "after"), 200)
	p.end()
	for path, want := range map[string]os.FileMode{file: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	must(t, "check", file)
	must(t, "check", "--data-dir", dir)

	if said := must(t, "restore", file, "--data-dir", again); !strings.Contains(said, "deleted objects, of which the backup has 1 with 2 versions") {
		t.Errorf("said: %s", said)
	}
	must(t, "check", "--data-dir", again)
	p = launch(t, "--data-dir", again)
	defer p.end()
	if version := p.must("GET", collection+"/flags", "", 200); version != kept {
		t.Errorf("restored with version %s, it had %s", version, kept)
	}
	p.must("PUT", collection+"/flags", fmt.Sprintf(flags, at(lost), "wrong"), 409)
	p.must("GET", collection+"?resourceVersionMatch=Exact&resourceVersion="+lost, "", 410)
	p.must("GET", collection+"/flags/history?resourceVersion="+lost, "", 410)
	next := p.must("PUT", collection+"/flags", fmt.Sprintf(flags, at(kept), "next"), 200)
	if n, err := strconv.Atoi(next); err != nil || n < 2<<20 {
		t.Errorf("the next version is %s; %v", next, err)
	}
}

func TestBackupWithoutAServer(t *testing.T) {
	dir, file := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "file")
	p := launch(t, "--data-dir", dir)
	p.must("POST", collection, fmt.Sprintf(flags, "", "x"), 201)
	p.end()
	t.Setenv("CMSERVER_DATA_DIR", dir) // the server's variables are these commands' too
	must(t, "backup", file)
	must(t, "check")
	code, stdout, _ := invoke(t, nil, "backup", "-")
	t.Setenv("CMSERVER_DATA_DIR", filepath.Join(t.TempDir(), "again"))
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if code, _, said := invoke(t, strings.NewReader(stdout), "restore", "-"); code != 0 {
		t.Errorf("restore from standard input: %d, %s", code, said)
	}
	if code, _, said := invoke(t, strings.NewReader(stdout), "check", "-"); code != 0 {
		t.Errorf("check of standard input: %d, %s", code, said)
	}
}

// The path of a socket is far shorter than that of a directory may be.
func TestBackupOfADirectoryWithALongPath(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a way around it")
	}
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 50), "data")
	file := filepath.Join(t.TempDir(), "file")
	p := launch(t, "--data-dir", dir)
	must(t, "backup", "--data-dir", dir, file)
	p.end()
	if _, err := os.Stat(filepath.Join(dir, socketName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// A server that was killed leaves its socket. Nobody is kept from anything by it.
func TestASocketThatWasLeftBehind(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(t.TempDir(), name) }
	launch(t, "--data-dir", dir).end()
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, socketName)})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, socketNew, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	must(t, "backup", "--data-dir", dir, file("without a server"))
	p := launch(t, "--data-dir", dir)
	defer p.end()
	must(t, "backup", "--data-dir", dir, file("from a server"))
	info, err := os.Stat(filepath.Join(dir, socketName))
	if err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(dir, socketNew)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder in which it was made: %v", err)
	}
}

// A client that takes nothing holds up no write, keeps others from a backup and
// no longer than it is there, and the server stops in spite of it.
func TestAClientThatTakesNothing(t *testing.T) {
	dir := t.TempDir()
	p := launch(t, "--data-dir", dir)
	for i := range 8 {
		p.must("POST", collection, fmt.Sprintf(`{"metadata":{"name":"big%d"},"data":{"k":%q}}`, i, strings.Repeat("x", 1_000_000)), 201)
	}
	standing := func() io.ReadCloser {
		body, err := askForBackup(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(body, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		return body
	}
	first := standing()
	p.must("POST", collection, fmt.Sprintf(flags, "", "during"), 201)
	code, _, said := invoke(t, nil, "backup", "--data-dir", dir, filepath.Join(t.TempDir(), "second"))
	if code != 1 || !strings.Contains(said, "another backup is being made") {
		t.Errorf("a second backup: %d, %s", code, said)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	for deadline := time.Now().Add(time.Minute); ; {
		code, _, said = invoke(t, nil, "backup", "--data-dir", dir, filepath.Join(t.TempDir(), "third"))
		if code == 0 || time.Now().After(deadline) {
			break
		}
		runtime.Gosched() // the server hears of the end of the first one in its own time
	}
	if code != 0 {
		t.Errorf("after the client has gone: %d, %s", code, said)
	}
	last := standing()
	p.end()
	if _, err := io.Copy(io.Discard, last); err == nil {
		t.Error("the server stopped in the midst of a backup, and it looks complete")
	}
	if err := last.Close(); err != nil {
		t.Error(err)
	}
}

// Why a running server can't give a backup reaches the client, however early it is
// known, and so does that the server went away.
func TestWhyARunningServerGivesNoBackup(t *testing.T) {
	damage := fmt.Errorf("backup: %w", &store.DamageError{Key: "configmaps/default/flags", Revision: 3, File: "000007.sst", What: "its checksum"})
	for name, c := range map[string]struct {
		give func(w io.Writer) error
		code int
		says []string
	}{
		"damage at once":       {func(io.Writer) error { return damage }, 1, []string{"configmaps/default/flags", "000007.sst", "cmserver check --data-dir"}},
		"damage later":         {func(w io.Writer) error { return errors.Join(begun(w, 1_000_000), damage) }, 1, []string{"000007.sst", "cmserver check --data-dir"}},
		"something else":       {func(io.Writer) error { return store.ErrClosed }, 1, []string{"the running server says", "closed"}},
		"the connection broke": {func(w io.Writer) error { _ = begun(w, 1_000_000); panic(http.ErrAbortHandler) }, 7, []string{"broke off", "the server goes on"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			listener, err := listenSocket(dir)
			if err != nil {
				t.Fatal(err)
			}
			b := &backupService{log: slog.New(slog.DiscardHandler), busy: make(chan struct{}, 1), give: func(_ context.Context, w io.Writer) (local.BackupInfo, error) {
				return local.BackupInfo{}, c.give(w)
			}}
			hs := &http.Server{Handler: b, ErrorLog: log.New(io.Discard, "", 0)}
			done := make(chan error)
			go func() { done <- hs.Serve(listener) }()
			code, _, said := invoke(t, nil, "backup", "--data-dir", dir, filepath.Join(t.TempDir(), "file"))
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for _, part := range c.says {
				if !strings.Contains(said, part) {
					t.Errorf("%q is not in: %s", part, said)
				}
			}
			if err := hs.Close(); err != nil {
				t.Error(err)
			}
			<-done
		})
	}
}

// A server that is killed before it says anything has gone away as well.
func TestAServerThatGoesBeforeItsFirstAnswer(t *testing.T) {
	dir := t.TempDir()
	listener, err := listenSocket(dir)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			_, err = conn.Read(make([]byte, 1)) // the rest is unread: the client's side is reset
		}
		done <- errors.Join(err, listener.Close(), conn.Close())
	}()
	code, _, said := invoke(t, nil, "backup", "--data-dir", dir, filepath.Join(t.TempDir(), "file"))
	if code != 7 || !strings.Contains(said, "the server has ended; start it again") || strings.Contains(said, "@->") {
		t.Errorf("%d, %s", code, said)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// begun is the begin of a backup and so many bytes of a block.
func begun(w io.Writer, n int) error {
	a, err := archive.NewWriter(w, []byte(`{"resourceVersion":"1"}`))
	if err != nil {
		return err
	}
	return a.Add(bytes.Repeat([]byte("x"), n))
}

// A backup that broke off is none, and nothing comes of it.
func TestABackupThatBreaksOff(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole")
	dir := t.TempDir()
	p := launch(t, "--data-dir", dir)
	p.must("POST", collection, fmt.Sprintf(flags, "", "x"), 201)
	must(t, "backup", "--data-dir", dir, whole)
	p.end()
	b, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	code, _, said := invoke(t, bytes.NewReader(b[:len(b)-1]), "check", "-")
	if code != 1 || !strings.Contains(said, "damaged") {
		t.Errorf("check of a cut backup: %d, %s", code, said)
	}
	code, _, said = invoke(t, bytes.NewReader(b[:len(b)-1]), "restore", "-", "--data-dir", filepath.Join(dir, "new"))
	if code != 1 || !strings.Contains(said, "damaged") {
		t.Errorf("restore of a cut backup: %d, %s", code, said)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
}

func TestWhatBackupRestoreAndCheckRefuse(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	running := t.TempDir()
	p := launch(t, "--data-dir", running)
	defer p.end()
	stopped := filepath.Join(t.TempDir(), "stopped")
	launch(t, "--data-dir", stopped).end()
	folder := t.TempDir()
	backup := filepath.Join(folder, "backup")
	must(t, "backup", "--data-dir", stopped, backup)
	other := filepath.Join(folder, "other")
	if err := os.WriteFile(other, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := damagedData(t)
	logs, unfinished, cut := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "cut")
	whole, err := os.ReadFile(backup)
	for path, content := range map[string][]byte{
		filepath.Join(logs, "app.log"):         nil,
		filepath.Join(unfinished, "RESTORING"): nil,
		cut:                                    whole[:max(len(whole)-1, 0)],
	} {
		if err = errors.Join(err, os.WriteFile(path, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"no file for a backup", []string{"backup"}, 2, []string{"one argument"}},
		{"two files", []string{"backup", "a", "b"}, 2, []string{"one argument"}},
		{"a file that is there", []string{"backup", "--data-dir", stopped, other}, 2, []string{other, "there already", "--force"}},
		{"a folder as file", []string{"backup", "--data-dir", stopped, "--force", folder}, 2, []string{folder, "is a directory"}},
		{"a device as file", []string{"backup", "--data-dir", stopped, "--force", os.DevNull}, 2, []string{"no file", "'-'"}},
		{"a folder that isn't there", []string{"backup", "--data-dir", stopped, filepath.Join(folder, "no", "file")}, 2, []string{"can't write"}},
		{"a file as folder", []string{"backup", "--data-dir", stopped, filepath.Join(other, "file")}, 2, []string{"can't write"}},
		{"backup of a file", []string{"backup", "--data-dir", other, filepath.Join(folder, "new")}, 2, []string{other, "not a directory"}},
		{"backup of nothing", []string{"backup", "--data-dir", folder, filepath.Join(folder, "new")}, 2, []string{"there is no store in " + folder}},
		{"backup of the default directory, which isn't there", []string{"backup", filepath.Join(folder, "new")}, 2, []string{"there is no store in"}},
		{"backup of another's logs", []string{"backup", "--data-dir", logs, filepath.Join(folder, "new")}, 2, []string{"there is no store in " + logs}},
		{"check of another's logs", []string{"check", "--data-dir", logs}, 2, []string{"there is no store in " + logs}},
		{"backup of an unfinished restore", []string{"backup", "--data-dir", unfinished, filepath.Join(folder, "new")}, 2, []string{"a restore into it was not finished"}},
		{"check of an unfinished restore", []string{"check", "--data-dir", unfinished}, 2, []string{"a restore into it was not finished"}},
		{"restore of a damaged file", []string{"restore", cut, "--data-dir", filepath.Join(folder, "new")}, 1, []string{"the backup is damaged", "nothing is left there"}},
		{"backup of damaged data", []string{"backup", "--data-dir", damaged, filepath.Join(folder, "new")}, 1, []string{"damaged", "cmserver check"}},
		{"an unknown setting", []string{"backup", "--listen", "x", "file"}, 2, []string{"--listen", "--help"}},
		{"restore over a store", []string{"restore", backup, "--data-dir", stopped}, 2, []string{stopped, "not empty"}},
		{"restore over a running server's", []string{"restore", backup, "--data-dir", running}, 2, []string{running, "not empty"}},
		{"restore over a file", []string{"restore", backup, "--data-dir", other}, 2, []string{other, "not a directory"}},
		{"restore beyond all versions", []string{"restore", backup, "--data-dir", filepath.Join(folder, "new"), "--above", "4611686018427387905"}, 2, []string{"--above"}},
		{"restore of a folder", []string{"restore", folder, "--data-dir", filepath.Join(folder, "new")}, 2, []string{folder + " is a directory"}},
		{"restore of nothing", []string{"restore", backup + ".not", "--data-dir", folder}, 2, []string{backup + ".not", "no such file"}},
		{"restore of something else", []string{"restore", other, "--data-dir", filepath.Join(folder, "new")}, 2, []string{"no backup", "cmctl apply"}},
		{"a short advance", []string{"restore", backup, "--data-dir", filepath.Join(folder, "new"), "--advance", "1000"}, 2, []string{"1048576"}},
		{"above nothing", []string{"restore", backup, "--data-dir", filepath.Join(folder, "new"), "--above", "0"}, 2, []string{"--above"}},
		{"check of a running server's data", []string{"check", "--data-dir", running}, 2, []string{"while a server has it open", "backup"}},
		{"check of nothing", []string{"check", "--data-dir", folder}, 2, []string{"there is no store in " + folder}},
		{"check of a file as folder", []string{"check", "--data-dir", other}, 2, []string{other, "not a directory"}},
		{"check of no file", []string{"check", backup + ".not"}, 2, []string{backup + ".not"}},
		{"check of a folder as file", []string{"check", folder}, 2, []string{"--data-dir " + folder}},
		{"check of both", []string{"check", backup, "--data-dir", stopped}, 2, []string{"either"}},
		{"check of something else", []string{"check", other}, 2, []string{"no backup", "cmctl apply"}},
		{"check of damaged data", []string{"check", "--data-dir", damaged}, 1, []string{damaged, "damaged", "restore a backup"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, said := invoke(t, nil, c.args...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for _, part := range c.says {
				if !strings.Contains(said, part) {
					t.Errorf("%q is not in: %s", part, said)
				}
			}
			if found := c.name == "check of damaged data"; found != (stdout != "") {
				t.Errorf("on stdout: %s", stdout)
			}
		})
	}
	if b, err := os.ReadFile(other); err != nil || string(b) != "something else" {
		t.Errorf("another's file: %q, %v", b, err)
	}
	if names := namesIn(t, folder); !slices.Equal(names, []string{"backup", "other"}) {
		t.Errorf("left behind: %v", names)
	}
}

func namesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// In memory there is nothing that could be backed up, and no socket.
func TestNoBackupOfAServerInMemory(t *testing.T) {
	t.Setenv("CMSERVER_IN_MEMORY", "true")
	launch(t).end()
	if code, _, said := invoke(t, nil, "backup", filepath.Join(t.TempDir(), "file")); code != 2 || !strings.Contains(said, "in-memory") {
		t.Errorf("%d, %s", code, said)
	}
}

// A server whose directory takes no socket serves, and says what it can't do.
func TestADirectoryThatTakesNoSocket(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, socketName, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := launch(t, "--data-dir", dir)
	defer p.end()
	p.must("POST", collection, fmt.Sprintf(flags, "", "x"), 201)
	if log := p.log.String(); !strings.Contains(log, "no backups while this server runs") {
		t.Errorf("log: %s", log)
	}
	code, _, said := invoke(t, nil, "backup", "--data-dir", dir, filepath.Join(t.TempDir(), "file"))
	if code != 2 || !strings.Contains(said, "offers no backup") {
		t.Errorf("%d, %s", code, said)
	}
}

// The file has its name when it is complete, and no other is replaced unasked,
// whether the file system has files without a name or not.
func TestBackupFile(t *testing.T) {
	begin := func(t *testing.T, path string, force, named bool) *backupFile {
		f, err := newBackupFile(path, force)
		if err != nil {
			t.Fatal(err)
		}
		if named && f.temp == "" {
			f.discard()
			if f.File, err = os.CreateTemp(filepath.Dir(path), ".x.*.part"); err != nil {
				t.Fatal(err)
			}
			f.temp = f.Name()
		}
		if _, err := f.Write([]byte("new")); err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, named := range []bool{false, true} {
		for _, force := range []bool{false, true} {
			t.Run(fmt.Sprintf("named %t, force %t", named, force), func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "file")
				begin(t, path, force, named).discard()
				if names := namesIn(t, dir); len(names) != 0 {
					t.Errorf("after giving up: %v", names)
				}
				f := begin(t, path, force, named)
				if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("it has its name too early: %v", err)
				}
				if err := f.commit(); err != nil {
					t.Fatal(err)
				}
				if b, err := os.ReadFile(path); err != nil || string(b) != "new" {
					t.Errorf("%q, %v", b, err)
				}
				if names := namesIn(t, dir); len(names) != 1 {
					t.Errorf("afterwards: %v", names)
				}

				// Somebody makes the file meanwhile.
				path = filepath.Join(dir, "contested")
				f = begin(t, path, force, named)
				if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
					t.Fatal(err)
				}
				err, want := f.commit(), "old"
				if force {
					want = "new"
				}
				if (err == nil) != force {
					t.Errorf("commit: %v", err)
				}
				f.discard()
				if b, err := os.ReadFile(path); err != nil || string(b) != want {
					t.Errorf("%q, want %q; %v", b, want, err)
				}
				if names := namesIn(t, dir); len(names) != 2 {
					t.Errorf("afterwards: %v", names)
				}
			})
		}
	}
}

// With --force the file that a link leads to is replaced, and the link stays.
func TestBackupFileBehindALink(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	target, link := filepath.Join(elsewhere, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(target, []byte("old"), 0o600), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	f, err := newBackupFile(link, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.commit(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(target); err != nil || len(b) != 0 {
		t.Errorf("%q, %v", b, err)
	}
	if to, err := os.Readlink(link); err != nil || to != target {
		t.Errorf("the link leads to %s, %v", to, err)
	}
}

func TestBar(t *testing.T) {
	var screen bytes.Buffer
	now := time.Unix(0, 0)
	b := newBar(&screen, "backup")
	b.now, b.next = func() time.Time { return now }, now.Add(barPace)
	b.draw(1, 4)
	if b.w != nil || screen.Len() > 0 {
		t.Errorf("shown on what is no terminal: %q", &screen)
	}
	b.w = &screen
	b.draw(1, 4) // too early
	b.clear()
	now = now.Add(barPace)
	b.draw(2, 4)
	b.draw(3, 4) // too soon after
	b.clear()
	if want := "\rbackup [###############...............] 2 of 4 objects\r\x1b[K"; screen.String() != want {
		t.Errorf("got %q", &screen)
	}
}
