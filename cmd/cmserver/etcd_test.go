package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// What says how etcd is reached is tried at the start, by its flag.
func TestHowEtcdIsReached(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	made := t.TempDir()
	must(t, "init", "--dir", made)
	file := func(name string) string { return filepath.Join(made, name) }
	good := storeConfig{EtcdCAFile: file("ca.crt"), EtcdCertFile: file("admin.crt"), EtcdKeyFile: file("admin.key")}
	for name, c := range map[string]struct {
		change func(*storeConfig)
		want   string // of the error; empty: none
	}{
		"all is well":               {func(*storeConfig) {}, ""},
		"no authority is there":     {func(c *storeConfig) { c.EtcdCAFile = file("none") }, "--etcd-ca-file: "},
		"an authority that is none": {func(c *storeConfig) { c.EtcdCAFile = file("admin.key") }, "--etcd-ca-file " + file("admin.key") + ": there is no certificate"},
		"no certificate is there":   {func(c *storeConfig) { c.EtcdCertFile = file("none") }, "--etcd-cert-file: "},
		"no key is there":           {func(c *storeConfig) { c.EtcdKeyFile = file("none") }, "--etcd-key-file: "},
		"another's key":             {func(c *storeConfig) { c.EtcdKeyFile = file("ca.key") }, "--etcd-cert-file "},
	} {
		t.Run(name, func(t *testing.T) {
			one := good
			c.change(&one)
			got, err := one.etcdTLS()
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("it is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			shown, err := got.GetClientCertificate(nil)
			if err != nil || len(shown.Certificate) == 0 {
				t.Fatalf("nothing is shown: %v", err)
			}
			must(t, "init", "--dir", made, "--renew")
			renewed, err := got.GetClientCertificate(nil)
			if err != nil || bytes.Equal(renewed.Certificate[0], shown.Certificate[0]) {
				t.Errorf("after a renewal the old one is shown, %v", err)
			}
		})
	}
	if got, err := (storeConfig{}).etcdTLS(); got != nil || err != nil {
		t.Errorf("without an authority it is %v, %v", got, err)
	}
}

func TestPasswordOfEtcd(t *testing.T) {
	for content, want := range map[string]string{"secret\n": "secret", "secret\r\n": "secret", " with spaces ": " with spaces "} {
		got, err := storeConfig{EtcdPasswordFile: writeFile(t, "password", content)}.etcdPassword()
		if got != want || err != nil {
			t.Errorf("%q: it is %q, %v", content, got, err)
		}
	}
	for _, path := range []string{writeFile(t, "password", "\n"), filepath.Join(t.TempDir(), "none")} {
		if _, err := (storeConfig{EtcdPasswordFile: path}).etcdPassword(); err == nil || !strings.Contains(err.Error(), "--etcd-password-file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
