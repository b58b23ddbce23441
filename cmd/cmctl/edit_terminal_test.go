package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// desk is a person at a terminal: a folder with scripts that stand for what they
// do in the editor, and a server of their own.
type desk struct {
	*testing.T
	dir string
}

func newDesk(t *testing.T, scripts map[string]string) *desk {
	t.Helper()
	url, stop, err := serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	d := &desk{t, t.TempDir()}
	for name, text := range scripts {
		d.write(name, "set -e\n"+text)
	}
	for name, value := range map[string]string{
		"HOME": d.dir, "XDG_CONFIG_HOME": d.dir, "TMPDIR": filepath.Join(d.dir, "drafts"), "CMCTL_SERVER": url,
		"TERM": "vt100", "GORACE": "atexit_sleep_ms=0",
	} {
		t.Setenv(name, value)
	}
	if err := os.Mkdir(filepath.Join(d.dir, "drafts"), 0o700); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) write(name, text string) {
	d.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
		d.Fatal(err)
	}
}

func (d *desk) read(name string) string {
	d.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil {
		d.Fatal(err)
	}
	return string(text)
}

// drafts are the texts that are kept.
func (d *desk) drafts() []string {
	found, err := filepath.Glob(filepath.Join(d.dir, "drafts", "*", "[^~]*"))
	if err != nil {
		d.Fatal(err)
	}
	return found
}

// sh runs a command without a terminal.
func (d *desk) sh(command string) string {
	d.Helper()
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = d.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// screen is what a program writes to its terminal.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // holds one if there is something new
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.ReplaceAll(s.text.String(), "\r\n", "\n")
}

// key is something that a person types once the screen shows a text.
type key struct{ once, typed string }

// run runs cmctl in a pseudo-terminal and returns its exit code and all that was
// on the screen.
func (d *desk) run(editor string, keys []key, args ...string) (int, string) {
	d.Helper()
	cmd := exec.Command("cmctl", args...)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "CMCTL_EDITOR="+editor)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		d.Fatal(err)
	}
	seen := &screen{more: make(chan struct{}, 1)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		buffer := make([]byte, 4096)
		for {
			n, err := tty.Read(buffer)
			seen.Write(buffer[:n])
			if err != nil {
				return // EIO: the last program has closed it
			}
		}
	}()
	hung := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer hung.Stop()
	defer cmd.Process.Kill() // if the test ends before it does
	for _, k := range keys {
		for ended := false; !strings.Contains(seen.String(), k.once); {
			if ended {
				d.Fatalf("the screen never showed %q:\n%s", k.once, seen)
			}
			select {
			case <-seen.more:
			case <-read:
				ended = true
			}
		}
		if _, err := tty.WriteString(k.typed); err != nil {
			d.Fatal(err)
		}
	}
	err = cmd.Wait()
	<-read
	tty.Close()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		d.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), seen.String()
}

// clash is an editor in which the person changes what somebody else changes while
// it is open.
const clash = `
if [ ! -e met ]; then
	touch met
	cmctl apply -f other.yaml --force >/dev/null 2>&1
	subst 'mode: green' 'mode: red' "$1"
	subst 'rollout: "10"' 'rollout: "50"' "$1"
	exit
fi
cp "$1" marked.yaml
`

const otherYAML = `{apiVersion: v1, kind: ConfigMap, metadata: {name: flags}, data: {mode: white, rollout: "10", theirs: "1"}}`

func metDesk(t *testing.T, then string) *desk {
	t.Helper()
	d := newDesk(t, map[string]string{"edit.sh": clash + then})
	d.write("other.yaml", otherYAML)
	d.sh("cmctl create flags --from-literal=mode=green --from-literal=rollout=10")
	return d
}

func wants(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q in\n%s", part, text)
		}
	}
}

func TestAPersonDecidesAConflictInTheirEditor(t *testing.T) {
	d := metDesk(t, `sed -i '/^<<<<<<< /d; /^||||||| /,/^>>>>>>> /d' "$1"`)
	code, screen := d.run("sh ./edit.sh", nil, "edit", "flags")
	if code != 0 {
		t.Errorf("edit ended with %d:\n%s", code, screen)
	}
	wants(t, screen, "configmap/flags edited", "changed on both sides: data[mode]")
	wants(t, d.read("marked.yaml"),
		"# Somebody else wrote while you edited",
		"# changed by both: data[mode]\n",
		`# yours, made again: data[rollout]: "10" -> "50"`,
		`# theirs, kept: data[theirs]: (absent) -> "1"`,
		"<<<<<<< yours\n  mode: red\n||||||| when you opened it (version ",
		")\n  mode: green\n=======\n  mode: white\n>>>>>>> now (version ",
		"), by cmctl-apply at or before ")
	wants(t, d.sh("cmctl get flags -o yaml"), "mode: red", `rollout: "50"`, `theirs: "1"`)
	if left := d.drafts(); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// Nothing is written as long as a marker is left, and what there is of the
// decision is kept.
func TestNothingIsWrittenWithAMarkerLeft(t *testing.T) {
	for _, c := range []struct {
		name, then string
		want       string // in the draft
		seen       string // on the screen
	}{
		{"untouched", "", "<<<<<<< yours", "you and somebody else changed the same thing"},
		{"emptied", `: > "$1"`, "<<<<<<< yours", "you and somebody else changed the same thing"},
		{"one left", `sed -i '/^<<<<<<< /d' "$1"`, "\n|||||||", "conflict markers are left in your text (line "},
		{"the editor fails", `exit 1`, "<<<<<<< yours", "you and somebody else changed the same thing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := metDesk(t, c.then)
			code, screen := d.run("sh ./edit.sh", nil, "edit", "flags")
			if code != exitConflict {
				t.Errorf("edit ended with %d", code)
			}
			wants(t, screen, c.seen, "your text is kept in ", "go on with: cmctl edit --resume ")
			stored := d.sh("cmctl get flags -o yaml")
			wants(t, stored, "mode: white", `rollout: "10"`)
			left := d.drafts()
			if len(left) != 1 {
				t.Fatalf("%v is left", left)
			}
			text, err := os.ReadFile(left[0])
			if err != nil {
				t.Fatal(err)
			}
			wants(t, string(text), c.want, `rollout: "50"`)

			// Without a terminal it can't be decided either; with one it can.
			if code := d.code("cmctl edit --resume " + left[0]); code != exitConflict {
				t.Errorf("going on without a decision ended with %d", code)
			}
			d.write("decide.sh", `cp "$1" resumed.yaml; sed -i '/^<<<<<<< /d; /^||||||| /,/^>>>>>>> /d' "$1"`)
			// It was made from the object as it is now, so nothing is to be met again.
			if code, screen := d.run("sh ./decide.sh", nil, "edit", "--resume", left[0]); code != 0 || strings.Contains(screen, "refused") {
				t.Errorf("going on ended with %d:\n%s", code, screen)
			}
			wants(t, d.sh("cmctl get flags -o yaml"), "mode: red", `rollout: "50"`, `theirs: "1"`)
			// The note said where the markers are, and what they mean.
			resumed := d.read("resumed.yaml")
			wants(t, resumed, "# A marked part shows what you wrote", "nothing is written until none is left.")
			first := 1 + slices.IndexFunc(strings.Split(resumed, "\n"), func(line string) bool {
				return strings.HasPrefix(line, "<<<<<<<") || strings.HasPrefix(line, "|||||||")
			})
			wants(t, resumed, fmt.Sprintf("conflict markers are left in your text (line %d, ", first))
		})
	}
}

// code runs a command without a terminal, with an editor that changes nothing.
func (d *desk) code(command string) int {
	d.Helper()
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "CMCTL_EDITOR=true")
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		d.Fatalf("%v\n%s", err, out)
	}
	return cmd.ProcessState.ExitCode()
}

// Inside of a value a marker would be text like any other.
func TestAMarkerInAValueIsNotWritten(t *testing.T) {
	d := newDesk(t, map[string]string{"edit.sh": `
if [ ! -e met ]; then
	touch met
	CMCTL_EDITOR='sed -i s/8080/9090/' cmctl edit flags --key app.conf >/dev/null 2>&1
	sed -i s/8080/7070/ "$1"
	exit
fi
[ -e marked.yaml ] || cp "$1" marked.yaml
sed -i '/^    <<<<<<< /d; /^    ||||||| /,/^    =======/d' "$1"`})
	d.write("app.conf", "host a\nport 8080\ntls on\n")
	d.sh("cmctl create flags --from-file=app.conf")
	code, screen := d.run("sh ./edit.sh", nil, "edit", "flags")
	if code != exitConflict {
		t.Errorf("edit ended with %d", code)
	}
	wants(t, screen, "conflict markers are left in your text (line ")
	wants(t, d.read("marked.yaml"), "  app.conf: |\n    host a\n    <<<<<<< yours\n    port 7070\n    ||||||| when", "\n    port 9090\n    >>>>>>> now", "\n    tls on\n")
	wants(t, d.sh("cmctl get flags -o yaml"), "    host a\n    port 9090\n    tls on\n")
}

// Who writes again while the person decides is met again: what overlaps is
// decided anew, what doesn't is merged.
func TestADecisionMayMeetAnotherWrite(t *testing.T) {
	d := newDesk(t, map[string]string{"edit.sh": `
n=$(($(cat round 2>/dev/null || echo 0) + 1))
echo $n > round
cp "$1" round$n.yaml
case $n in
1)
	cmctl edit flags --key mode >/dev/null 2>&1
	subst 'mode: green' 'mode: mine' "$1" ;;
2)
	CMCTL_EDITOR='subst w1 w2' cmctl edit flags --key mode >/dev/null 2>&1
	sed -i '/^<<<<<<< /d; /^||||||| /,/^>>>>>>> /d' "$1" ;;
3)
	CMCTL_EDITOR='sed -i $aafter' cmctl edit flags --key notes >/dev/null 2>&1
	sed -i '/^<<<<<<< /d; /^||||||| /,/^>>>>>>> /d' "$1" ;;
esac`})
	d.write("edit.sh", strings.Replace(d.read("edit.sh"), "cmctl edit", "CMCTL_EDITOR='subst green w1' cmctl edit", 1))
	d.write("notes.txt", "a\n")
	d.sh("cmctl create flags --from-literal=mode=green --from-file=notes=notes.txt")
	code, screen := d.run("sh ./edit.sh", nil, "edit", "flags")
	if code != 0 || strings.TrimSpace(d.read("round")) != "3" {
		t.Errorf("edit ended with %d after round %s:\n%s", code, d.read("round"), screen)
	}
	wants(t, d.read("round2.yaml"), "  mode: mine\n|||||||", "  mode: green\n=======\n  mode: w1\n>>>>>>>")
	wants(t, d.read("round3.yaml"), "  mode: mine\n|||||||", "  mode: w1\n=======\n  mode: w2\n>>>>>>>")
	wants(t, d.sh("cmctl get flags -o yaml"), "mode: mine", "    a\n    after\n")
}

// What is there may be what the person takes.
func TestTheirsIsTakenByWritingNothing(t *testing.T) {
	d := metDesk(t, `sed -i '/^<<<<<<< /,/^=======$/d; /^>>>>>>> /d; s/rollout: "50"/rollout: "10"/' "$1"`)
	code, screen := d.run("sh ./edit.sh", nil, "edit", "flags")
	if code != 0 || strings.Contains(screen, "edited") {
		t.Errorf("edit ended with %d:\n%s", code, screen)
	}
	wants(t, screen, "Edit cancelled: nothing was changed")
	wants(t, d.sh("cmctl get flags -o yaml"), "mode: white", `rollout: "10"`, `theirs: "1"`)
	if left := d.drafts(); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

func TestAValueAloneIsDecidedAsAFile(t *testing.T) {
	d := newDesk(t, map[string]string{"edit.sh": `
if [ ! -e met ]; then
	touch met
	CMCTL_EDITOR='sed -i s/8080/9090/' cmctl edit flags --key app.toml >/dev/null 2>&1
	sed -i s/8080/7070/ "$1"
	exit
fi
cp "$1" marked.toml
sed -i '/^<<<<<<< /d; /^||||||| /,/^>>>>>>> /d' "$1"`})
	d.write("app.toml", "host = \"a\"\nport = 8080\ntls = true\n")
	d.sh("cmctl create flags --from-file=app.toml")
	if code, screen := d.run("sh ./edit.sh", nil, "edit", "flags", "--key", "app.toml"); code != 0 {
		t.Errorf("edit ended with %d:\n%s", code, screen)
	}
	wants(t, d.read("marked.toml"), "host = \"a\"\n<<<<<<< yours\nport = 7070\n||||||| when you opened it", "\nport = 8080\n=======\nport = 9090\n>>>>>>> now")
	wants(t, d.sh("cmctl get flags -o yaml"), "    host = \"a\"\n    port = 7070\n    tls = true\n")
}

// Ctrl-C belongs to the editor; one that dies of it ends the edit.
func TestCtrlCInTheEditor(t *testing.T) {
	d := newDesk(t, map[string]string{
		"dies.sh":  `subst 'mode: green' 'mode: red' "$1"; echo READY; sleep 50`,
		"lives.sh": `trap 'subst "mode: green" "mode: red" "$1"; exit 0' INT; echo READY; read answer`,
	})
	d.sh("cmctl create flags --from-literal=mode=green")
	code, screen := d.run("sh ./dies.sh", []key{{"READY", "\x03"}}, "edit", "flags")
	if code != exitInterrupted {
		t.Errorf("edit ended with %d", code)
	}
	wants(t, screen, `the editor "sh" was ended with Ctrl-C; nothing was written`, "your text is kept in ")
	wants(t, d.sh("cmctl get flags -o yaml"), "mode: green")
	if code, screen := d.run("sh ./lives.sh", []key{{"READY", "\x03"}}, "edit", "flags"); code != 0 {
		t.Errorf("edit ended with %d:\n%s", code, screen)
	}
	wants(t, d.sh("cmctl get flags -o yaml"), "mode: red")
}

// Two signals end cmctl at once, but after the editor: what it shows last would hide
// where the text is.
func TestAForcedEndIsToldWhenTheEditorIsGone(t *testing.T) {
	d := newDesk(t, map[string]string{"slow.sh": `
trap 'sleep 0.1; echo SCREEN GIVEN BACK; exit' TERM
kill -HUP $PPID; kill -TERM $PPID
while :; do sleep 0.01; done`})
	d.sh("cmctl create flags --from-literal=mode=green")
	code, screen := d.run("sh ./slow.sh", nil, "edit", "flags")
	if code != exitInterrupted {
		t.Errorf("edit ended with %d", code)
	}
	if _, after, back := strings.Cut(screen, "SCREEN GIVEN BACK"); !back || !strings.Contains(after, "your text, if you changed it, is in ") {
		t.Errorf("the screen shows\n%s", screen)
	}
}

// An editor that people have: vi, if it is installed.
func TestInVi(t *testing.T) {
	if _, err := exec.LookPath(defaultEditor); err != nil {
		t.Skipf("%s is not installed", defaultEditor)
	}
	d := newDesk(t, nil)
	d.sh("cmctl create flags --from-literal=mode=green")
	code, screen := d.run("", []key{{"mode: green", ":%s/green/red/\r:wq\r"}}, "edit", "flags")
	if code != 0 {
		t.Errorf("edit ended with %d:\n%s", code, screen)
	}
	wants(t, d.sh("cmctl get flags -o yaml"), "mode: red")
}
