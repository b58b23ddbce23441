package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestWhereTheDataIs(t *testing.T) {
	for _, c := range []struct {
		name string
		file string // the configuration file
		env  map[string]string
		args []string
		site string
	}{
		{"nothing is said", "", nil, nil, "local:STATE/cmserver"},
		{"a directory", "", nil, []string{"--data-dir=d"}, "local:d"},
		{"a directory as a store", "", nil, []string{"--store=local:d"}, "local:d"},
		{"the default directory as a store", "", nil, []string{"--store=local:"}, "local:STATE/cmserver"},
		{"memory", "", nil, []string{"--in-memory"}, "memory"},
		{"memory as a store", "", nil, []string{"--store=memory"}, "memory"},
		{"a flag before the file", "store: memory\n", nil, []string{"--data-dir=d"}, "local:d"},
		{"a variable before the file", "in-memory: true\n", map[string]string{"CMSERVER_STORE": "local:d"}, nil, "local:d"},
		{"a flag before a variable", "", map[string]string{"CMSERVER_DATA_DIR": "d"}, []string{"--store=memory"}, "memory"},
		{"memory that is not wanted", "in-memory: true\n", nil, []string{"--in-memory=false", "--data-dir=d"}, "local:d"},
		{"a cluster", "", nil, []string{"--store=etcd://a:1,b:2/p/q"}, "etcd://a:1,b:2/p/q"},
		{"a cluster without port and prefix", "", nil, []string{"--store=etcd://a"}, "etcd://a:2379/cmserver"},
		{"a cluster with slashes", "", nil, []string{"--store=etcd://a/p/"}, "etcd://a:2379/p"},
		{"addresses", "", nil, []string{"--store=etcd://[::1]:5,127.0.0.1,[fe80::1]"}, "etcd://[::1]:5,127.0.0.1:2379,[fe80::1]:2379/cmserver"},
		{"in the file", "store: etcd://a:1\netcd-ca-file: ca.pem\n", nil, nil, "etcd://a:1/cmserver"},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := t.TempDir()
			t.Setenv("HOME", state)
			t.Setenv("XDG_CONFIG_HOME", "")
			t.Setenv("XDG_STATE_HOME", state)
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			got, err := load(t, append(c.args, "--config="+writeFile(t, "config.yaml", c.file+"verbose: true\n"))...)
			if want := strings.Replace(c.site, "STATE", filepath.ToSlash(state), 1); err != nil || got.site.String() != want {
				t.Errorf("it is %s, %v, want %s", got.site, err, want)
			}
		})
	}
}

func TestStoresThatAreRefused(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	for args, want := range map[string]string{
		"--store=local:d --data-dir=d":        "--store and --data-dir each say where the data is",
		"--in-memory --data-dir=d":            "--data-dir and --in-memory each say",
		"--store=file:d":                      `--store "file:d": must be local:DIR, memory, or etcd://`,
		"--store=d":                           "must be local:DIR, memory",
		"--store=Memory":                      "must be local:DIR, memory",
		"--store=etcd://":                     `the host ""`,
		"--store=etcd:///p":                   `the host ""`,
		"--store=etcd://a,":                   `the host ""`,
		"--store=etcd://a:0":                  `the host "a:0"`,
		"--store=etcd://a:b":                  `the host "a:b"`,
		"--store=etcd://::1":                  `the host "::1"`,
		"--store=etcd://a,a:2379":             "a:2379 is named twice",
		"--store=etcd://u:p@a":                "--etcd-user",
		"--store=etcd://a/p?x=y":              "plain segments",
		"--store=etcd://a/p//q":               "plain segments",
		"--store=etcd://a --etcd-cert-file=c": "needed together",
		"--store=etcd://a --etcd-cert-file=c --etcd-key-file=k": "--etcd-cert-file needs --etcd-ca-file",
		"--store=etcd://a --etcd-user=u":                        "--etcd-user and --etcd-password-file are needed together",
		"--store=etcd://a --etcd-timeout=1ms":                   "--etcd-timeout 1ms: must be between",
		"--store=etcd://a --etcd-compaction-interval=1s":        "--etcd-compaction-interval 1s: must be between",
		"--in-memory --etcd-ca-file=c":                          "--etcd-ca-file is of no use without --store etcd://",
		"--in-memory --etcd-compaction-interval=5m":             "--etcd-compaction-interval is of no use",
	} {
		if _, err := load(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}
