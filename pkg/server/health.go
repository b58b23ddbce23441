package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"example.com/cmctl/pkg/server/store"
	"example.com/cmctl/pkg/types"
)

// check is one thing that a probe looks at.
type check struct {
	name string
	look func() error // nil while all is well
}

// Concern is something that may be wrong while the server still works. Probes tell
// of it with ?verbose and go on.
type Concern struct {
	Name string       // one word
	Look func() error // nil while all is well
}

// ping is what every probe looks at: that somebody answers.
var ping = check{"ping", func() error { return nil }}

// serveHealth serves the probes under Kubernetes' names: /livez is for whether
// the process should be restarted, /readyz and the older /healthz for whether it
// takes writes. Each check has a path of its own below.
func (s *Server) serveHealth(mux *http.ServeMux) {
	writes := check{"store", s.store.Healthy}
	for probe, checks := range map[string][]check{
		"livez":   {ping},
		"readyz":  {ping, writes},
		"healthz": {ping, writes},
	} {
		s.handle(mux, "/"+probe, route{}, s.health(probe, checks))
		for _, c := range checks {
			s.handle(mux, "/"+probe+"/"+c.name, route{}, s.health(c.name, []check{c}))
		}
	}
}

// isProbe tells whether a path is that of a probe, or of one of its checks.
func isProbe(path string) bool {
	probe, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return probe == "livez" || probe == "readyz" || probe == "healthz"
}

// publicReason is what a probe may tell of a cause: of those that a store is known
// to have, which one it is. The cause itself is for the log.
func publicReason(err error) string {
	var damage *store.DamageError
	switch {
	case errors.As(err, &damage) && damage.File != "":
		return store.ErrDamaged.Error() + ", file " + damage.File
	case errors.Is(err, store.ErrDamaged):
		return store.ErrDamaged.Error()
	}
	for _, known := range []error{store.ErrTaken, store.ErrFailed, store.ErrClusterFull, store.ErrFull, store.ErrStalled, store.ErrUnreachable, store.ErrClosed} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "reason withheld"
}

// health answers a probe with text, as Kubernetes' are: "ok", or each check by
// name.
func (s *Server) health(probe string, checks []check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			s.refuse(w, r, types.MethodNotAllowed(""))
			return
		}
		excluded := r.URL.Query()["exclude"]
		var report strings.Builder
		failed := false
		for _, c := range checks {
			if slices.Contains(excluded, c.name) {
				fmt.Fprintf(&report, "[+]%s excluded: ok\n", c.name)
				continue
			}
			if err := c.look(); err != nil {
				failed = true
				s.log.Warn("probe failed", "probe", probe, "check", c.name, "err", err)
				fmt.Fprintf(&report, "[-]%s failed: %s\n", c.name, publicReason(err))
				continue
			}
			fmt.Fprintf(&report, "[+]%s ok\n", c.name)
		}
		if d, ok := s.store.(store.Describer); ok {
			fmt.Fprintf(&report, "[i]store: %s\n", d.Describe())
		}
		if s.faults != nil {
			fmt.Fprintf(&report, "[!]faults are injected on purpose: %s\n", s.faults)
		}
		for _, c := range s.options.Concerns {
			if c.Look() != nil {
				fmt.Fprintf(&report, "[!]%s: reason withheld, the log has it\n", c.Name)
			}
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch {
		case failed:
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = fmt.Fprintf(w, "%s%s check failed\n", report.String(), probe)
		case r.URL.Query().Has("verbose"):
			_, _ = fmt.Fprintf(w, "%s%s check passed\n", report.String(), probe)
		default:
			_, _ = fmt.Fprint(w, "ok")
		}
	})
}
