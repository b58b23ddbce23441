package main

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	clientcmd "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"example.com/cmctl/cmd/cmserver/internal/pki"
)

// newFile is one that is to be written.
type newFile struct {
	name    string
	content []byte
}

// madeFiles are what init makes.
type madeFiles struct {
	files                      []newFile // in the order of writing; the settings come last
	caEnd, serverEnd, adminEnd time.Time
}

func (m *madeFiles) add(name string, content []byte) {
	m.files = append(m.files, newFile{name, content})
}

// make makes all in memory.
func (o *initOptions) make(names []string, url string) (madeFiles, error) {
	var m madeFiles
	ca, caKey, err := pki.NewAuthority("cmserver "+rand.Text()[:8], o.caLife, o.now)
	if err != nil {
		return m, err
	}
	serverKey, err := pki.NewKey()
	if err != nil {
		return m, err
	}
	server, err := ca.Server(serverKey.Public(), names, o.serverLife, o.now)
	if err != nil {
		return m, fmt.Errorf("the server's certificate: %w", err)
	}
	m.caEnd, m.serverEnd = ca.Certificate.NotAfter, server.NotAfter
	m.add(caCertFile, pki.CertificatePEM(ca.Certificate))
	m.add(serverCertFile, pki.CertificatePEM(server))
	if err := errors.Join(m.addKey(caKeyFile, caKey), m.addKey(serverKeyFile, serverKey)); err != nil {
		return m, err
	}
	who := clientcmd.AuthInfo{}
	setting := "client-ca-file"
	from := caCertFile
	if o.token {
		setting, from = "token-auth-file", tokensFile
		who.Token = m.addToken()
	} else if who, err = m.addAdmin(ca, o); err != nil {
		return m, err
	}
	config, err := kubeconfig(url, pki.CertificatePEM(ca.Certificate), who)
	if err != nil {
		return m, err
	}
	m.add(kubeconfigFile, config)
	text, err := yaml.Marshal(map[string]string{
		"listen": o.listen, "tls-cert-file": o.path(serverCertFile), "tls-private-key-file": o.path(serverKeyFile), setting: o.path(from),
	})
	m.add(configFile, append([]byte("# Made by cmserver init; 'cmserver --help' has all settings.\n"), text...))
	return m, err
}

func (m *madeFiles) addKey(name string, key crypto.PrivateKey) error {
	text, err := pki.KeyPEM(key)
	m.add(name, text)
	return err
}

// addAdmin makes the administrator's certificate.
func (m *madeFiles) addAdmin(ca *pki.Authority, o *initOptions) (clientcmd.AuthInfo, error) {
	key, err := pki.NewKey()
	if err != nil {
		return clientcmd.AuthInfo{}, err
	}
	cert, err := ca.Client(key.Public(), adminUser, []string{adminGroup}, o.clientLife, o.now)
	if err != nil {
		return clientcmd.AuthInfo{}, err
	}
	text, err := pki.KeyPEM(key)
	if err != nil {
		return clientcmd.AuthInfo{}, err
	}
	m.adminEnd = cert.NotAfter
	m.add(adminCertFile, pki.CertificatePEM(cert))
	m.add(adminKeyFile, text)
	return clientcmd.AuthInfo{ClientCertificateData: pki.CertificatePEM(cert), ClientKeyData: text}, nil
}

// tokenBytes is how much of a token is left to chance.
const tokenBytes = 32

// addToken makes a token. The server's file has its digest alone.
func (m *madeFiles) addToken() string {
	var random [tokenBytes]byte
	_, _ = rand.Read(random[:]) // it never fails
	token := base64.RawURLEncoding.EncodeToString(random[:])
	digest := sha256.Sum256([]byte(token))
	m.add(tokensFile, fmt.Appendf(nil, "sha256:%s,%s,%s,%q\n", hex.EncodeToString(digest[:]), adminUser, adminUser, adminGroup))
	return token
}

// kubeconfigName is what a kubeconfig calls the server, and its context.
const kubeconfigName = "cmserver"

func kubeconfig(url string, ca []byte, who clientcmd.AuthInfo) ([]byte, error) {
	return yaml.Marshal(clientcmd.Config{
		Kind:           "Config",
		APIVersion:     "v1",
		Clusters:       []clientcmd.NamedCluster{{Name: kubeconfigName, Cluster: clientcmd.Cluster{Server: url, CertificateAuthorityData: ca}}},
		AuthInfos:      []clientcmd.NamedAuthInfo{{Name: adminUser, AuthInfo: who}},
		Contexts:       []clientcmd.NamedContext{{Name: kubeconfigName, Context: clientcmd.Context{Cluster: kubeconfigName, AuthInfo: adminUser}}},
		CurrentContext: kubeconfigName,
	})
}

// stagePrefix begins the name of a folder in which files wait to be put in place.
const stagePrefix = ".cmserver-init-"

// placeNew puts new files into a folder: all or none of them, unless the machine
// stops in between, when each one is there whole or not at all. A folder that is not
// there comes with all of them in one step.
func placeNew(dir string, files []newFile) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	isNew := errors.Is(err, fs.ErrNotExist)
	switch {
	case isNew:
	case err != nil:
		return err
	case !info.IsDir():
		return usageError{fmt.Errorf("%s is no folder; choose another --dir", dir)}
	default:
		if err := mayPlace(dir, info, files); err != nil {
			return usageError{err}
		}
	}
	parent := dir
	if isNew {
		parent = filepath.Dir(dir)
	}
	stage, err := os.MkdirTemp(parent, stagePrefix+"*") // mode 0700
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage) // gone if it has become the folder
	for _, f := range files {
		if err := writeWhole(filepath.Join(stage, f.name), f.content); err != nil {
			return err
		}
	}
	if err := syncDir(stage); err != nil {
		return err
	}
	if isNew {
		err = os.Rename(stage, dir)
	} else {
		err = linkAll(stage, dir, files)
	}
	return errors.Join(err, syncDir(parent))
}

// mayPlace refuses a folder in which one of the files is, or into which others may
// put some.
func mayPlace(dir string, info fs.FileInfo, files []newFile) error {
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("others may write to %s, and so replace what is put there: chmod go-w %s, or choose another --dir", dir, quoted(dir))
	}
	var there []string
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, f.name)); !errors.Is(err, fs.ErrNotExist) {
			there = append(there, f.name)
		}
	}
	if len(there) == 0 {
		return nil
	}
	slices.Sort(there)
	next := "choose another --dir, or renew the certificates with --renew"
	if !slices.Contains(there, configFile) {
		next = "choose another --dir, or remove them if an init that was cut off has left them"
	}
	return fmt.Errorf("%s has %s already, and nothing is overwritten; nothing was made; %s", dir, strings.Join(there, ", "), next)
}

// linkAll puts files from one folder into another where none of their names is
// taken. If one can't be put there, none stays.
func linkAll(from, to string, files []newFile) error {
	for i, f := range files {
		err := os.Link(filepath.Join(from, f.name), filepath.Join(to, f.name))
		if err == nil {
			continue
		}
		for _, placed := range files[:i] {
			err = errors.Join(err, os.Remove(filepath.Join(to, placed.name)))
		}
		return err
	}
	return nil
}

// writeWhole writes a file that its owner alone may read, to the disk.
func writeWhole(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

// replaceFile puts new content in the place of a file in one step.
func replaceFile(path string, content []byte) error {
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, content) {
		return nil
	}
	stage, err := os.MkdirTemp(filepath.Dir(path), stagePrefix+"*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	made := filepath.Join(stage, filepath.Base(path))
	if err := writeWhole(made, content); err != nil {
		return err
	}
	if err := os.Rename(made, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}
