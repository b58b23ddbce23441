package etcd_test

import (
	"net/url"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// embedded is an etcd of one member in this process. What it writes may be lost with the
// machine.
func embedded(t testing.TB) (endpoint string) {
	t.Helper()
	return start(t, config(t))
}

// config is that of an embedded etcd on a free port.
func config(t testing.TB) *embed.Config {
	c := embed.NewConfig()
	c.Dir = t.TempDir()
	c.LogLevel = "fatal"
	c.UnsafeNoFsync = true
	c.MaxTxnOps = maxOps
	c.BcryptCost = 4 // the least, for what is slow on purpose
	listen := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.ListenClientUrls, c.ListenPeerUrls = listen, listen
	c.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "localhost:2380"}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	return c
}

func start(t testing.TB, c *embed.Config) (endpoint string) {
	t.Helper()
	e, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(time.Minute):
		t.Fatal("etcd does not start")
	}
	return e.Clients[0].Addr().String()
}
