package lines

// search finds a shortest way from one text to another: E. Myers, An O(ND)
// Difference Algorithm and Its Variations (1986), the variant with linear space.
// On diagonal k are the places (i,j) with i-j = k; forward[k] and backward[k]
// say how far in x the best ways from the start and from the end have come.
type search struct {
	x, y              *selection
	forward, backward []int
	offset            int // diagonal k is at [offset+k]
	maxCost           int
}

// minCost is up to how many edits from each end the shortest way is looked for.
// Beyond, a good one will do, which keeps the time to about minCost*lines.
const minCost = 256

func (s *search) run() {
	n, m := len(s.x.lines), len(s.y.lines)
	s.offset = m + 1
	s.forward, s.backward = make([]int, n+m+3), make([]int, n+m+3)
	s.maxCost = max(minCost, roughRoot(n+m+3))
	s.between(box{0, n, 0, m})
}

// box is the part [x0,x1) of one text against [y0,y1) of the other.
type box struct{ x0, x1, y0, y1 int }

func (s *search) between(b box) {
	for {
		for b.x0 < b.x1 && b.y0 < b.y1 && s.same(b.x0, b.y0) {
			b.x0, b.y0 = b.x0+1, b.y0+1
		}
		for b.x0 < b.x1 && b.y0 < b.y1 && s.same(b.x1-1, b.y1-1) {
			b.x1, b.y1 = b.x1-1, b.y1-1
		}
		if b.x0 == b.x1 || b.y0 == b.y1 {
			s.x.markFrom(b.x0, b.x1)
			s.y.markFrom(b.y0, b.y1)
			return
		}
		i, j := s.middle(b)
		s.between(box{b.x0, i, b.y0, j})
		b.x0, b.y0 = i, j
	}
}

func (s *search) same(i, j int) bool { return s.x.lines[i] == s.y.lines[j] }

// reach is the range of diagonals that the ways from one end have come to, of
// those that the box has.
type reach struct{ low, high, lowest, highest int }

// widen makes room for one more edit. Diagonals that the ways can't come to are
// left out; those beside the range get the value never.
func (r *reach) widen(ways []int, offset, never int) {
	if r.low > r.lowest {
		r.low--
		ways[offset+r.low-1] = never
	} else {
		r.low++
	}
	if r.high < r.highest {
		r.high++
		ways[offset+r.high+1] = never
	} else {
		r.high--
	}
}

func (r *reach) has(k int) bool { return r.low <= k && k <= r.high }

// middle is a place in the box that a shortest way through it passes, neither
// its first nor its last.
func (s *search) middle(b box) (i, j int) {
	first, last := b.x0-b.y0, b.x1-b.y1
	lowest, highest := b.x0-b.y1, b.x1-b.y0
	odd := (first-last)&1 != 0
	fwd, bwd := reach{first, first, lowest, highest}, reach{last, last, lowest, highest}
	s.forward[s.offset+first], s.backward[s.offset+last] = b.x0, b.x1
	for cost := 1; ; cost++ {
		fwd.widen(s.forward, s.offset, -1)
		for k := fwd.high; k >= fwd.low; k -= 2 {
			i := s.step(b, k)
			if odd && bwd.has(k) && s.backward[s.offset+k] <= i {
				return i, i - k
			}
		}
		bwd.widen(s.backward, s.offset, len(s.x.lines)+1)
		for k := bwd.high; k >= bwd.low; k -= 2 {
			i := s.stepBack(b, k)
			if !odd && fwd.has(k) && i <= s.forward[s.offset+k] {
				return i, i - k
			}
		}
		if cost >= s.maxCost {
			return s.farthest(b, fwd, bwd)
		}
	}
}

// step takes the better of the ways beside diagonal k onto it, and on through
// equal lines.
func (s *search) step(b box, k int) int {
	at := s.offset + k
	i := s.forward[at+1]
	if s.forward[at-1] >= i {
		i = s.forward[at-1] + 1
	}
	for i < b.x1 && i-k < b.y1 && s.same(i, i-k) {
		i++
	}
	s.forward[at] = i
	return i
}

func (s *search) stepBack(b box, k int) int {
	at := s.offset + k
	i := s.backward[at+1] - 1
	if s.backward[at-1] <= i {
		i = s.backward[at-1]
	}
	for i > b.x0 && i-k > b.y0 && s.same(i-1, i-k-1) {
		i--
	}
	s.backward[at] = i
	return i
}

// farthest is the place, of all that the ways have come to, which is farthest
// from where its way began.
func (s *search) farthest(b box, fwd, bwd reach) (int, int) {
	best, i, j := -1, 0, 0
	for k := fwd.high; k >= fwd.low; k -= 2 {
		x := min(s.forward[s.offset+k], b.x1, b.y1+k)
		if done := x - b.x0 + x - k - b.y0; done > best {
			best, i, j = done, x, x-k
		}
	}
	for k := bwd.high; k >= bwd.low; k -= 2 {
		x := max(s.backward[s.offset+k], b.x0, b.y0+k)
		if done := b.x1 - x + b.y1 - (x - k); done > best {
			best, i, j = done, x, x-k
		}
	}
	return i, j
}
