package keyring

import (
	"crypto/sha256"
	"sync"
)

// memory remembers which tokens a key's signature was verified for, since that
// takes longer than all else of a small request, and callers send the same
// token with each. It says nothing of the claims, which are judged every time,
// and goes with its key, at the next fetch of the keys at the latest.
type memory struct {
	mu   sync.Mutex
	good map[[sha256.Size]byte]struct{}
}

// remembered bounds a memory; a full one starts again from nothing.
const remembered = 4096

func newMemory() *memory { return &memory{good: map[[sha256.Size]byte]struct{}{}} }

// identify gives what stands for a signature over something by an algorithm:
// a hash of the three, each apart from the next.
func identify(alg string, signed, signature []byte) [sha256.Size]byte {
	one := sha256.Sum256(signed)
	two := sha256.Sum256(signature)
	return sha256.Sum256(append(append(one[:], two[:]...), alg...))
}

func (m *memory) has(token [sha256.Size]byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.good[token]
	return ok
}

func (m *memory) add(token [sha256.Size]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.good) >= remembered {
		clear(m.good)
	}
	m.good[token] = struct{}{}
}

// readings remember how tokens were taken apart whose signature verified: that depends
// on nothing but the token, and is most of what a small request costs otherwise. All
// that is asked of header, signature and claims is asked every time. The zero value is
// empty.
type readings struct {
	mu   sync.Mutex
	some map[[sha256.Size]byte]token
}

// kept bounds readings, of a few kibibytes each; full ones start again from nothing.
const kept = 1024

// parse is parseToken. What it gives must not be changed.
func (r *readings) parse(raw string) (token, error) {
	if len(raw) > MaxTokenBytes {
		return parseToken(raw) // refused unread
	}
	of := sha256.Sum256([]byte(raw))
	r.mu.Lock()
	t, ok := r.some[of]
	r.mu.Unlock()
	if ok {
		return t, nil
	}
	return parseToken(raw)
}

func (r *readings) keep(raw string, t token) {
	of := sha256.Sum256([]byte(raw))
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, there := r.some[of]; r.some == nil || !there && len(r.some) >= kept {
		r.some = map[[sha256.Size]byte]token{}
	}
	r.some[of] = t
}
