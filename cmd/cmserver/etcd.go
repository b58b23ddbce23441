package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"example.com/cmctl/pkg/server/reload"
	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/server/store/etcd"
)

// openEtcd opens the store on a cluster. mustExist refuses a place where there is none.
func (c config) openEtcd(ctx context.Context, s site, first store.Revision, mustExist bool, log *slog.Logger) (store.Store, error) {
	encryption, err := c.etcdTLS()
	if err != nil {
		return nil, usageError{err}
	}
	password, err := c.etcdPassword()
	if err != nil {
		return nil, usageError{err}
	}
	st, err := etcd.Open(ctx, etcd.Options{
		Endpoints:        s.endpoints,
		Prefix:           s.prefix,
		TLS:              encryption,
		Username:         c.EtcdUser,
		Password:         password,
		Timeout:          c.EtcdTimeout,
		InitialVersion:   first,
		MustExist:        mustExist,
		InlineValueSize:  c.InlineValueSize,
		HistoryLimit:     c.HistoryLimit,
		DeletedRetention: c.deletedRetention(),
		DeletedLimit:     c.DeletedLimit,
		Logger:           log,
	})
	switch {
	case errors.Is(err, store.ErrUnreachable), errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("%w; --store names the members of the cluster, --etcd-ca-file, --etcd-cert-file and --etcd-key-file how they are reached", err)
	case err != nil:
		return nil, fmt.Errorf("the store can't be opened: %w", err)
	}
	return st, nil
}

// cleanUp gives up what is old on a cluster, in the one of all replicas that is to do so.
func (c config) cleanUp(ctx context.Context, st *etcd.Store, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		st.Lead(ctx, func(ctx context.Context) {
			k := &compactor{store: st, window: c.HistoryWindow, log: log}
			k.after = func(ctx context.Context, due store.Revision) error {
				return c.afterCompaction(ctx, st, k, due)
			}
			k.run(ctx)
		})
	}()
	return func() { cancel(); <-done }
}

// afterCompaction removes what was given up, and now and then compacts the cluster.
func (c config) afterCompaction(ctx context.Context, st *etcd.Store, k *compactor, due store.Revision) error {
	if err := st.Sweep(ctx); err != nil {
		return err
	}
	if every := c.EtcdCompactionInterval; every == 0 || time.Since(k.cluster) < every {
		return nil
	}
	k.cluster = time.Now()
	return st.CompactCluster(ctx, due)
}

// etcdTLS is how connections to etcd are encrypted; nil: they are not.
func (c storeConfig) etcdTLS() (*tls.Config, error) {
	if c.EtcdCAFile == "" {
		return nil, nil
	}
	text, err := reload.ReadFile(c.EtcdCAFile)
	if err != nil {
		return nil, fmt.Errorf("--etcd-ca-file: %w", err)
	}
	t := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	if !t.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--etcd-ca-file %s: there is no certificate in it", c.EtcdCAFile)
	}
	if c.EtcdCertFile == "" {
		return t, nil
	}
	if _, err := c.etcdCertificate(nil); err != nil {
		return nil, err
	}
	t.GetClientCertificate = c.etcdCertificate
	return t, nil
}

// etcdCertificate reads what is shown to etcd, anew for each connection: it is renewed
// without a restart.
func (c storeConfig) etcdCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	cert, err := reload.ReadFile(c.EtcdCertFile)
	if err != nil {
		return nil, fmt.Errorf("--etcd-cert-file: %w", err)
	}
	key, err := reload.ReadFile(c.EtcdKeyFile)
	if err != nil {
		return nil, fmt.Errorf("--etcd-key-file: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil { // it names the half that is bad, and shows nothing of it
		return nil, fmt.Errorf("--etcd-cert-file %s and --etcd-key-file %s: %w", c.EtcdCertFile, c.EtcdKeyFile, err)
	}
	return &pair, nil
}

// etcdPassword is that of EtcdUser, empty without one.
func (c storeConfig) etcdPassword() (string, error) {
	if c.EtcdPasswordFile == "" {
		return "", nil
	}
	text, err := reload.ReadFile(c.EtcdPasswordFile)
	if err != nil {
		return "", fmt.Errorf("--etcd-password-file: %w", err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return "", errors.New("--etcd-password-file " + c.EtcdPasswordFile + ": there is nothing in it")
	}
	return password, nil
}
