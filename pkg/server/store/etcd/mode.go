package etcd

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	semver "k8s.io/apimachinery/pkg/util/version"
)

// mode is how reads of the present are answered.
type mode struct {
	mu     sync.Mutex // guards what follows
	direct bool
	says   string
	next   time.Time // when the members are asked again
}

// Members are asked for their releases now and then, for they are upgraded.
const modeEvery = 30 * time.Second

func (m *mode) isDirect() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.direct
}

// Describe tells how reads of the present are answered. See store.Describer.
func (s *Store) Describe() string {
	s.mode.mu.Lock()
	defer s.mode.mu.Unlock()
	return s.mode.says
}

// refresh asks again, if it is time to.
func (m *mode) refresh(s *Store) {
	m.mu.Lock()
	due := time.Now().After(m.next)
	m.mu.Unlock()
	if due {
		s.learnMode(s.ctx)
	}
}

// learnMode asks every member for its release. Where one doesn't answer, nothing is taken
// for granted.
func (s *Store) learnMode(ctx context.Context) {
	direct, why := s.mustReadDirectly(ctx)
	says := "etcd " + why + ": reads come from memory, once it has the cluster's revision"
	if direct {
		says = "etcd " + why + ": every consistent read asks etcd"
	}
	m := &s.mode
	m.mu.Lock()
	changed := m.says != says
	m.direct, m.says, m.next = direct, says, time.Now().Add(modeEvery)
	m.mu.Unlock()
	if changed && ctx.Err() == nil {
		s.log.Info("store: " + says)
	}
}

func (s *Store) mustReadDirectly(ctx context.Context) (direct bool, why string) {
	if s.limited {
		return true, "behind kine, whose notices of progress are no proof"
	}
	var releases []string
	for _, endpoint := range s.opts.Endpoints {
		asked, cancel := context.WithTimeout(ctx, s.opts.Timeout)
		status, err := s.client.Status(asked, endpoint)
		cancel()
		if err != nil {
			return true, fmt.Sprintf("with a member (%s) that doesn't say its release", endpoint)
		}
		if !provesProgress(status.Version) {
			return true, status.Version + ", whose notices of progress are no proof"
		}
		if !strings.Contains(strings.Join(releases, " "), status.Version) {
			releases = append(releases, status.Version)
		}
	}
	return false, strings.Join(releases, " and ")
}

// provesProgress tells whether a release sends notices of progress only once all that was
// before is sent: etcd's issue 15220, mended in 3.4.31 and 3.5.13.
func provesProgress(release string) bool {
	v, err := semver.ParseSemantic(release)
	if err != nil {
		return false
	}
	before := func(text string) bool { return v.LessThan(semver.MustParseSemantic(text)) }
	return !before("3.4.31") && (before("3.5.0") || !before("3.5.13"))
}
