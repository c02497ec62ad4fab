package cgroup_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"envapi/sandbox"
	"envapi/sandbox/cgroup"
)

// boxes gives the folders of all boxes of a tree, by that of their account.
func (f *fake) boxes(parent string) map[string][]string {
	f.t.Helper()
	found := map[string][]string{}
	for _, a := range f.folders(parent) {
		found[a] = f.folders(parent + "/" + a)
	}
	return found
}

func (f *fake) expectBoxes(parent string, want map[string][]string) {
	f.t.Helper()
	if got := f.boxes(parent); fmt.Sprint(got) != fmt.Sprint(want) {
		f.t.Errorf("the groups are %v, want %v", got, want)
	}
}

// take takes a group for a box of an account.
func take(t *testing.T, p *cgroup.Parent, account string) *cgroup.Group {
	t.Helper()
	g, err := p.Take(account, sandbox.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// accountFakes are the trees of both versions, and where the service's groups are.
func accountFakes(t *testing.T) map[string]func() (f *fake, parent string) {
	return map[string]func() (*fake, string){
		"v1": func() (*fake, string) {
			return newFake(t, "/", "cgroup cgroup rw,cpu,memory", "4:cpu,memory:/\n", filesV1), "envapi-x"
		},
		"v2": func() (*fake, string) { return newFakeV2(t, "own", "cpu memory pids"), "own/envapi-x" },
	}
}

func TestTheBoxesOfAnAccountAreWeighedTogether(t *testing.T) {
	for name, fresh := range accountFakes(t) {
		t.Run(name, func(t *testing.T) {
			f, parent := fresh()
			p := f.open()
			for _, account := range []string{"alice", "bob", "", "alice", ""} {
				take(t, p, account)
			}
			f.expectBoxes(parent, map[string][]string{"a0": {"b0", "b1"}, "a1": {"b0"}, "a2": {"b0"}, "a3": {"b0"}})
			if name == "v2" {
				f.expect(map[string]string{parent + "/a1/cgroup.subtree_control": "+cpu +memory +pids"})
			}
		})
	}
}

// TestAnAccountsGroupIsNobodysOnlyWhenItsLastBoxIsGone: two accounts must never be
// in one, and one never in two.
func TestAnAccountsGroupIsNobodysOnlyWhenItsLastBoxIsGone(t *testing.T) {
	for name, fresh := range accountFakes(t) {
		t.Run(name, func(t *testing.T) {
			f, parent := fresh()
			p := f.open()
			first, second := take(t, p, "alice"), take(t, p, "alice")
			first.Release()
			take(t, p, "bob")
			f.expectBoxes(parent, map[string][]string{"a0": {"b0", "b1"}, "a1": {"b0"}})
			take(t, p, "alice") // the group that is kept
			f.expectBoxes(parent, map[string][]string{"a0": {"b0", "b1"}, "a1": {"b0"}})
			second.Release()
			take(t, p, "carol")
			f.expectBoxes(parent, map[string][]string{"a0": {"b0", "b1"}, "a1": {"b0"}, "a2": {"b0"}})
		})
	}
	t.Run("and is another's then", func(t *testing.T) {
		f, parent := accountFakes(t)["v2"]()
		p := f.open()
		take(t, p, "alice").Release()
		take(t, p, "bob")
		take(t, p, "alice")
		f.expectBoxes(parent, map[string][]string{"a0": {"b0"}, "a1": {"b0"}})
	})
}

func TestAnAccountsGroupIsRemovedWithTheLastThatIsKept(t *testing.T) {
	f, parent := accountFakes(t)["v2"]()
	p := f.open()
	groups := []*cgroup.Group{take(t, p, "alice")}
	for range cgroup.MaxIdle {
		groups = append(groups, take(t, p, "bob"))
	}
	for _, g := range groups {
		g.Release()
	}
	if got := f.folders(parent); !slices.Equal(got, []string{"a1"}) {
		t.Errorf("the groups of accounts are %v, want that of which something is kept", got)
	}
}

func TestAnAccountsGroupThatCannotBeMadeIsMadeForTheNext(t *testing.T) {
	f, parent := accountFakes(t)["v2"]()
	p := f.open()
	f.failing["a0"] = os.ErrPermission
	if g, err := p.Take("alice", sandbox.Limits{}); g != nil || err == nil {
		t.Fatalf("got %v, %v", g, err)
	}
	take(t, p, "alice")
	f.expectBoxes(parent, map[string][]string{"a1": {"b0"}})
}

func TestAccountsThatComeAndGoAtOnceLeaveNothing(t *testing.T) {
	f, parent := accountFakes(t)["v2"]()
	p := f.open()
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			dice := rand.New(rand.NewPCG(uint64(worker), 1))
			var held []*cgroup.Group
			for range 50 {
				if len(held) > 0 && dice.IntN(2) == 0 {
					held[0].Release()
					held = held[1:]
					continue
				}
				g, err := p.Take(fmt.Sprintf("account %d", dice.IntN(4)), sandbox.Limits{})
				if err != nil {
					t.Error(err)
					return
				}
				held = append(held, g)
			}
			for _, g := range held {
				g.Release()
			}
		})
	}
	all.Wait()
	kept := 0
	for account, boxes := range f.boxes(parent) {
		if kept += len(boxes); len(boxes) == 0 {
			t.Errorf("%s is left without a box", account)
		}
	}
	if kept > cgroup.MaxIdle {
		t.Errorf("%d groups are kept", kept)
	}
	f.must(p.Close())
	if _, err := os.Stat(f.path(parent)); err == nil {
		t.Error("the groups are left")
	}
}

// spin starts a process that computes in a group, and gives what counts it.
func spin(t *testing.T, g *cgroup.Group) *cgroup.Slot {
	t.Helper()
	slot, err := g.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	var files []*os.File
	for _, fd := range slot.Entries() {
		files = append(files, os.NewFile(uintptr(dup(t, fd)), "entry"))
	}
	c, err := startDoing(files, "while :; do :; done")
	for _, file := range files {
		_ = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	keepToOneCore(t, c.Process.Pid)
	return slot
}

// TestAnAccountWithManyBusyBoxesTakesNoMoreThanItsShare: by processor time, not by
// the clock, since the machine may be busy, and all on one core, since of several each
// would find its own. All boxes equal, the one would get an eighth of what the other
// eight have together.
func TestAnAccountWithManyBusyBoxesTakesNoMoreThanItsShare(t *testing.T) {
	p := cgroup.Open(cgroup.Options{Name: fmt.Sprintf("envapi-test-%d-fair", os.Getpid()), Log: discard})
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	needs(t, p, cgroup.CPU, cgroup.CPUTime)
	var many []*cgroup.Slot
	for range 8 {
		many = append(many, spin(t, take(t, p, "alice")))
	}
	one := spin(t, take(t, p, "bob"))
	of := func(slots ...*cgroup.Slot) (sum time.Duration) {
		for _, s := range slots {
			sum += *s.Used().CPU
		}
		return sum
	}
	before, beforeOne := of(many...), of(one)
	var used, usedOne time.Duration
	for deadline := time.Now().Add(2 * time.Minute); used+usedOne < 4*time.Second; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("they got %s and %s of a processor in 2 minutes", used, usedOne)
		}
		used, usedOne = of(many...)-before, of(one)-beforeOne
	}
	if usedOne < used/3 {
		t.Errorf("eight boxes of one account had %s of a processor, one of another %s", used, usedOne)
	}
	t.Logf("eight boxes of one account had %s of a processor, one of another %s", used, usedOne)
}

// keepToOneCore lets a process have the first of the cores that it may have.
func keepToOneCore(t *testing.T, pid int) {
	t.Helper()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &all); err != nil {
		t.Fatal(err)
	}
	first := 0
	for !all.IsSet(first) {
		first++
	}
	one.Set(first)
	if err := unix.SchedSetaffinity(pid, &one); err != nil {
		t.Fatal(err)
	}
}

// dup gives a descriptor of the test's own, since the slot's stays the slot's.
func dup(t *testing.T, fd int) int {
	t.Helper()
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		t.Fatal(err)
	}
	return own
}
