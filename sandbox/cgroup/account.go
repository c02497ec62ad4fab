package cgroup

import (
	"slices"
	"strconv"
	"sync"
)

// account is a group for the boxes of one account: each account weighs as much as
// another, however many boxes it has, and below it each of its boxes. When its last
// box is gone it is nobody's, and kept for the next account as long as it holds a
// group that is kept. The fields are its Parent's to guard.
type account struct {
	key   string // whose it is, while it has boxes; "": one box's alone
	name  string // its folder, once it is made
	boxes int    // that are there, or being made
	idle  int    // of the Parent's idle groups
	made  int    // numbers that were given to groups

	making sync.Once
	failed error
}

// enter counts one more box for an account, and gives the account's group and one
// of a box that is to be used again, where there is one.
func (p *Parent) enter(key string) (*account, *Group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.accounts[key]
	var again *Group
	for i, g := range slices.Backward(p.idle) {
		if g.account == a || a == nil && g.account.boxes == 0 {
			again, a = g, g.account
			p.idle = slices.Delete(p.idle, i, i+1)
			a.idle--
			break
		}
	}
	if a == nil {
		a = &account{}
	}
	if a.boxes == 0 {
		a.key = key
		if key != "" {
			p.accounts[key] = a
		}
	}
	a.boxes++
	return a, again
}

// leave counts one box less.
func (p *Parent) leave(a *account) {
	p.mu.Lock()
	p.forget(a)
	p.mu.Unlock()
	p.removeUnused(a)
}

// forget counts one box less, with the lock held.
func (p *Parent) forget(a *account) {
	a.boxes--
	if a.boxes == 0 && a.key != "" {
		delete(p.accounts, a.key)
	}
}

// keep takes the group of a box that is gone for the next one. What has been kept
// longest gives way where there are enough.
func (p *Parent) keep(g *Group) {
	p.mu.Lock()
	p.forget(g.account)
	p.idle = append(p.idle, g)
	g.account.idle++
	var surplus []*Group
	for len(p.idle) > maxIdle || p.closed && len(p.idle) > 0 {
		surplus = append(surplus, p.idle[0])
		p.idle[0].account.idle--
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	p.mu.Unlock()
	for _, s := range surplus {
		p.discard(s)
		p.removeUnused(s.account)
	}
}

// removeUnused removes the group of an account that has no box, and none kept:
// nobody finds it any more.
func (p *Parent) removeUnused(a *account) {
	p.mu.Lock()
	unused := a.boxes == 0 && a.idle == 0
	p.mu.Unlock()
	if unused && a.name != "" {
		p.destroy(a.name)
	}
}

// make makes the folders of an account, once.
func (p *Parent) make(a *account) error {
	a.making.Do(func() {
		a.name, a.failed = p.number(&p.made, "a")
		if a.failed == nil {
			a.failed = p.delegate(a.name)
		}
	})
	return a.failed
}

// number makes the folders of a group under the next number that is free: one
// with processes that do not die may be left from an earlier run.
func (p *Parent) number(made *int, prefix string) (string, error) {
	for {
		p.mu.Lock()
		name := prefix + strconv.Itoa(*made)
		*made++
		p.mu.Unlock()
		free, err := p.makeFolders(name)
		if err != nil {
			return "", err
		}
		if free {
			return name, nil
		}
	}
}
