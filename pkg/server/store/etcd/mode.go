package etcd

import (
	"context"
	"slices"
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

// Members are asked for their releases now and then, for they are upgraded; sooner while one
// of them keeps reads from the memory.
const (
	modeEvery  = 30 * time.Second
	modeDirect = 5 * time.Second
)

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
	if due || s.members.someAreOut() {
		s.learnMode(s.ctx)
	}
}

// learnMode asks every member for its release. Where one has never answered, nothing is
// taken for granted.
func (s *Store) learnMode(ctx context.Context) {
	direct, why := s.mustReadDirectly(ctx)
	says, wait := "etcd "+why+": reads come from memory, once it has the cluster's revision", modeEvery
	if direct {
		wait = modeDirect
		says = "etcd " + why + ": every consistent read asks etcd"
	}
	m := &s.mode
	m.mu.Lock()
	changed := m.says != says
	m.direct, m.says, m.next = direct, says, time.Now().Add(wait)
	m.mu.Unlock()
	if changed && ctx.Err() == nil {
		s.log.Info("store: " + says)
	}
}

func (s *Store) mustReadDirectly(ctx context.Context) (direct bool, why string) {
	if s.limited {
		return true, "behind kine, whose notices of progress are no proof"
	}
	releases := s.members.look(ctx, s)
	for _, release := range releases {
		switch {
		case release == "":
			return true, "with a member that hasn't told its release yet"
		case !provesProgress(release):
			return true, release + ", whose notices of progress are no proof"
		}
	}
	return false, strings.Join(slices.Compact(releases), " and ")
}

// provesProgress tells whether a release sends notices of progress only once all that was
// before is sent: etcd's issue 15220, mended in 3.4.31 and 3.5.13. Of what came before a
// release nobody knows.
func provesProgress(release string) bool {
	v, err := semver.ParseSemantic(release)
	if err != nil || v.PreRelease() != "" {
		return false
	}
	before := func(text string) bool { return v.LessThan(semver.MustParseSemantic(text)) }
	return !before("3.4.31") && (before("3.5.0") || !before("3.5.13"))
}
