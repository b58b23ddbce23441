// Package clients holds the tests that run the clients people have for
// Kubernetes, as they are, against a cmserver process: kubectl, client-go,
// controller-runtime, Helm and the JavaScript client. It is a module of its own,
// so that the product does not depend on them.
//
// What a client prints and sees is what it prints and sees on kube-apiserver, so
// nothing here works around the server: no flag that skips a check, no warning
// that is let pass. `kubectl -v=8` shows the requests behind a failure.
package clients
