package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/local"
)

// Everything is in the target afterwards, with its history; what clients know of the
// source meets conflicts and 410 there.
func TestMigrate(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	p := launch(t, "--data-dir", from)
	first := p.must("POST", collection, fmt.Sprintf(flags, "", "one"), 201)
	last := p.must("PUT", collection+"/flags", fmt.Sprintf(flags, at(first), "two"), 200)
	for _, c := range []struct{ name, from, to, says string }{
		{"a source that is in use", from, to, "in use"},
		{"a target that is in use", to, from, "there is no store"},
		{"a source that is not there", to, filepath.Join(t.TempDir(), "none"), "there is no store"},
	} {
		code, _, said := invoke(t, nil, "migrate", "--from", "local:"+c.from, "--to", "local:"+c.to)
		if code != 2 || !strings.Contains(said, c.says) {
			t.Errorf("%s: %d: %s", c.name, code, said)
		}
	}
	p.end()

	said := must(t, "migrate", "--from", "local:"+from, "--to", "local:"+to)
	if !strings.Contains(said, " both hold the same\nresourceVersions were up to "+last+", and go on at 10") {
		t.Errorf("said: %s", said)
	}
	if code, _, said := invoke(t, nil, "migrate", "--from", "local:"+from, "--to", "local:"+to); code != 2 || !strings.Contains(said, "is not empty; name another") {
		t.Errorf("a second migration: %d: %s", code, said)
	}
	q := launch(t, "--store", "local:"+to)
	defer q.end()
	q.must("PUT", collection+"/flags", fmt.Sprintf(flags, at(last), "lost"), 409)
	q.must("GET", collection+"?watch=1&timeoutSeconds=1&resourceVersion="+last, "", 200) // the event says 410
	if code, version, err := q.send("GET", collection+"/flags", ""); code != 200 || err != nil || len(version) <= len(last) {
		t.Errorf("it is at %s: %d, %v", version, code, err)
	}
	q.must("GET", collection+"/flags/history", "", 200)
}

func TestNoServerStartsOnAnUnfinishedMigration(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	st, err := local.Open(local.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	_, err = st.Commit(t.Context(), store.Txn{Writes: []store.Record{{Key: "cmserver/unfinished-migration", Value: []byte("{}")}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	code, _, said := invoke(t, nil, "--data-dir", dir, "--listen=127.0.0.1:0")
	if code != 1 || !strings.Contains(said, "local:"+dir+" is the target of a migration that is not finished") {
		t.Errorf("%d: %s", code, said)
	}
}

func TestMigrationsThatAreRefused(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	dir := t.TempDir()
	for args, want := range map[string]string{
		"":                                                  "--",
		"--from local:d":                                    "--to is needed",
		"--to local:d":                                      "--from is needed",
		"--from d --to local:d":                             `--from "d": must be local:DIR`,
		"--from local:d --to memory":                        "--to memory: what a server has in memory is gone",
		"--from memory --to local:d":                        "--from memory",
		"--from local: --to local:d":                        "--from local: needs its directory",
		"--from local:d --to local:d":                       "are the same store, local:d",
		"--from etcd://a --to etcd://a:2379/":               "are the same store, etcd://a:2379/cmserver",
		"--from local:d --to local:e f":                     `takes no argument "f"`,
		"--from local:d --to local:e --etcd-user u":         "needed together",
		"--from local:d --to local:e --history-limit 0":     "--history-limit 0",
		"--from local:d --to local:e --etcd-timeout 1000h":  "--etcd-timeout",
		"--from local:" + dir + " --to local:" + dir + "/e": "there is no store in " + dir,
	} {
		code, _, said := invoke(t, nil, append([]string{"migrate"}, strings.Fields(args)...)...)
		if code != 2 || !strings.Contains(said, want) {
			t.Errorf("%q: %d, want %q: %s", args, code, want, said)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "e")); !os.IsNotExist(err) {
		t.Errorf("a target was made: %v", err)
	}
}
