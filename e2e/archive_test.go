package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// aTree makes files of all kinds in a workspace, and looks prints what can be told of
// them, times included.
const (
	aTree = `mkdir -p a/deep b; echo one > a/one; printf '\000\377' > a/deep/bytes; ln -s ../a/one b/link; ln a/one b/hard
chmod 0751 a; chmod 0600 a/one; truncate -s 10M b/sparse; touch -d '2001-02-03 04:05:06.789' a/deep/bytes
head -c 3000000 /dev/urandom > b/noise; mkfifo b/fifo; touch -d '2002-03-04 05:06:07' a`
	looks = `find . -mindepth 1 -printf '%p %y %m %n %s %l %T@\n' | sort; find . -type f | sort | xargs sha256sum`
)

// folderOf is where the folder of an environment is, and archiveOf its archive.
func (s *service) folderOf(id string) string { return filepath.Join(s.data, "workspaces", id) }

func (s *service) archiveOf(id string) string {
	return filepath.Join(s.data, "archives", id+".tar.zst")
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestAnArchivedEnvironmentComesBackAsItWas(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		p := s.place(t)
		p.sh(t, aTree)
		before := p.sh(t, looks)
		running := p.background(t, "echo began; sleep 300")
		p.output(t, running.ID, object{"wait_ms": 10000})

		env := s.must(t, "archive_environment", p.in(nil))
		if env["state"] != "archived" || env["archived_at"] == nil || env["archive_bytes"] == nil {
			t.Fatalf("archived: %v", env)
		}
		if isThere(s.folderOf(p.id)) || !isThere(s.archiveOf(p.id)) {
			t.Error("the space is not freed, or there is no archive")
		}
		if c := s.get(t, running.ID, 0); c.Status != "killed" || c.Reason != "environment_archived" || c.Stdout.Text != "began\n" {
			t.Errorf("what ran is %+v", c)
		}
		_, err := p.call(t.Context(), "exec", p.in(object{"command": "true", "restore": false}))
		isProblem(t, "environment_archived", "exec", nil, err)

		if after := p.sh(t, looks); after != before {
			t.Errorf("it came back as\n%s\nand was\n%s", after, before)
		}
		if !isThere(s.folderOf(p.id)) || isThere(s.archiveOf(p.id)) {
			t.Error("the archive is left")
		}
		fork := place{s.rest, text(s.must(t, "fork_environment", p.in(object{"name": "fork"})), "id")}
		if after := fork.sh(t, looks); after != before {
			t.Errorf("the fork is\n%s\nand its source\n%s", after, before)
		}
		fork.sh(t, "echo two > a/one; rm -r b")
		if after := p.sh(t, looks); after != before {
			t.Error("a change in the fork is one in its source")
		}
	})
}

// TestManyUsesRestoreOnce uses an archived environment in all ways at once.
func TestManyUsesRestoreOnce(t *testing.T) {
	t.Parallel()
	s := start(t, config{})
	p := s.place(t)
	p.sh(t, aTree)
	s.must(t, "archive_environment", p.in(nil))
	calls := []func(context.Context) error{
		func(ctx context.Context) error {
			_, err := p.call(ctx, "exec", p.in(object{"command": "cat a/one"}))
			return err
		},
		func(ctx context.Context) error {
			_, err := p.call(ctx, "read_file", p.in(object{"path": "a/one"}))
			return err
		},
		func(ctx context.Context) error {
			_, err := p.call(ctx, "open_shell", p.in(nil))
			return err
		},
	}
	errs := make(chan error, 18)
	for i := range cap(errs) {
		go func() { errs <- calls[i%len(calls)](context.Background()) }()
	}
	var all error
	for range cap(errs) {
		all = errors.Join(all, <-errs)
	}
	if all != nil {
		t.Fatal(all)
	}
	if got := p.sh(t, "cat a/one"); got != "one\n" {
		t.Errorf("it holds %q", got)
	}
}
