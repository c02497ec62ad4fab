package files_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"envapi/core"
	"envapi/internal/workspace/files"
	"envapi/internal/workspace/inside"
)

const (
	crashDir   = "FILES_TEST_CRASH_DIR"
	crashPoint = "FILES_TEST_CRASH_POINT"
)

// crashed are the changes that are made when the process dies.
func crashed(stage func(string) core.Staged) []core.Change {
	return []core.Change{
		{Path: "replaced", Put: stage("new")},
		{Path: "taken"},
		{Path: "dir/file"},
		{Path: "added", Put: stage("new")},
		{Path: "dir/deep/er/file", Put: stage("new"), Parents: true},
		{Path: "dir/deep/other", Put: stage("new"), Parents: true},
		{Path: "link", Put: stage("new")},
	}
}

// crash is the process that dies: it makes the changes and kills itself at a point.
func crash(dir, point string) {
	open := func(name string) *os.File {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			panic(err)
		}
		return f
	}
	store, err := files.Open(dir, open("workspaces"), open("trash"), func(string, string) {})
	if err != nil {
		panic(err)
	}
	uid := 0
	if os.Geteuid() == 0 {
		uid = somebody
	}
	tree := store.Tree(testID, inside.NewRoot(open("workspaces/"+testID), uid, "/workspace"), uid)
	changes := crashed(func(content string) core.Staged {
		s, err := tree.Stage(context.Background(), strings.NewReader(content), -1)
		if err != nil {
			panic(err)
		}
		return s
	})
	store.SetPoint(func(at string) {
		fmt.Println(at)
		if at == point {
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		}
	})
	if _, err := tree.Commit(context.Background(), changes); err != nil {
		panic(err)
	}
}

func dieAt(t *testing.T, dir, point string) (passed string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crashPoint+"="+point)
	out, err := cmd.CombinedOutput()
	if (err == nil) != (point == "none") {
		t.Fatalf("it ended with %v: %s", err, out)
	}
	return string(out)
}

func prepareCrash(t *testing.T) *kit {
	t.Helper()
	k := newKit(t)
	k.put("replaced", "old", 0o600)
	k.put("taken", "old", 0o644)
	k.put("dir/file", "old", 0o644)
	k.put("target", "old", 0o644)
	k.link("/workspace/target", "link")
	return k
}

func TestAKillAtEachStepLeavesTheOldOrTheNew(t *testing.T) {
	points := []string{"begun", "prepared", "journal", "step 0", "step 1", "step 2", "step 3", "step 4", "step 5", "synced"}
	passed := dieAt(t, prepareCrash(t).dir, "none")
	for _, point := range points {
		if !strings.Contains(passed, point+"\n") {
			t.Fatalf("there is no point %q: %s", point, passed)
		}
	}
	after := []string{"ended", "discarding"}
	if n := strings.Count(passed, "\n"); n != len(points)+len(after) {
		t.Errorf("there are %d points: %s", n, passed)
	}
	for _, point := range append(points, after...) {
		t.Run(point, func(t *testing.T) {
			before := prepareCrash(t)
			dieAt(t, before.dir, point)
			k := openKit(t, before.dir)
			if slices.Contains(after, point) {
				wantNew(k)
			} else {
				wantOld(k)
			}
			k.wantClean()
			must(t, k.write("replaced", "again"))
		})
	}
}

func wantOld(k *kit) {
	k.t.Helper()
	for _, name := range []string{"replaced", "taken", "dir/file", "target"} {
		k.want(name, "old")
	}
	k.wantNone("added")
	k.wantNone("dir/deep")
	if mode := statOf(k.t, k.path+"/replaced").Mode & 0o777; mode != 0o600 {
		k.t.Errorf("the mode is %o", mode)
	}
}

func wantNew(k *kit) {
	k.t.Helper()
	for _, name := range []string{"replaced", "added", "dir/deep/er/file", "dir/deep/other", "target"} {
		k.want(name, "new")
	}
	k.wantNone("taken")
	k.wantNone("dir/file")
}

// A directory that is another one after the crash is left alone.
func TestRecoveryGoesNowhereElse(t *testing.T) {
	before := prepareCrash(t)
	dieAt(t, before.dir, "step 5")
	must(t, os.Rename(before.path+"/dir", before.path+"/was"))
	before.put("dir/deep/theirs", "somebody's", 0o644)
	must(t, os.Remove(before.path+"/added"))
	must(t, os.WriteFile(before.path+"/added", []byte("somebody's"), 0o600))
	k := openKit(t, before.dir)
	k.want("dir/deep/theirs", "somebody's")
	k.wantNone("dir/file")
	k.want("added", "somebody's")
	k.want("replaced", "old")
	k.want("taken", "old")
}

func TestLitterIsTakenAwayAtTheStart(t *testing.T) {
	k := newKit(t)
	k.stage("never committed")
	must(t, os.WriteFile(k.dir+"/staging/litter", nil, 0o600))
	must(t, os.Mkdir(k.dir+"/staging/env_other", 0o700))
	again := openKit(t, k.dir)
	if left, err := os.ReadDir(k.dir + "/staging"); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if len(again.gone) != 2 {
		t.Errorf("given away: %q", again.gone)
	}
}
