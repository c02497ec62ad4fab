package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"envapi/core"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(commitAndPrintEnv); path != "" {
		commitAndPrint(path)
	}
	if order := os.Getenv(upgradeAndDieEnv); order != "" {
		upgradeAndDie(order)
	}
	goleak.VerifyTestMain(m)
}

var (
	alice  = core.Owner{Account: "alice", Profile: "default"}
	alice2 = core.Owner{Account: "alice", Profile: "other"}
	bob    = core.Owner{Account: "bob", Profile: "default"}

	plenty = core.EnvironmentQuota{PerAccount: 1 << 20, PerProfile: 1 << 20, Archived: 1 << 20}
	noUIDs = core.UIDRange{}
	noKey  = core.Idempotency{}

	noon = time.Date(2026, 1, 2, 12, 0, 0, 345_678_901, time.FixedZone("elsewhere", 3600))
)

func openAt(tb testing.TB, path string) *Store {
	tb.Helper()
	s, err := Open(context.Background(), path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return s
}

func openNew(tb testing.TB) *Store {
	tb.Helper()
	s := openAt(tb, emptyStore(tb))
	hasten(tb, s)
	return s
}

// hasten has a store not wait for the disk, which a test that does not cut the power
// cannot tell: it is what thousands of commits take.
func hasten(tb interface{ Fatal(...any) }, s *Store) {
	for _, writer := range []*writer{s.durable, s.quick} {
		if _, err := writer.exec(context.Background(), `PRAGMA synchronous = OFF`); err != nil {
			tb.Fatal(err)
		}
	}
}

// emptyFile is what is in the file of a store without records.
var emptyFile = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "envapi-store-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "envapi.db")
	s, err := Open(context.Background(), path)
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// emptyStore gives the path of a store without records. What brings its schema up is
// done once for all tests that are not about that: with -race it takes as long as most
// of them together.
func emptyStore(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "envapi.db")
	text, err := emptyFile()
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// env is a record with only what a test does not care about filled in.
func env(o core.Owner, id string) core.EnvironmentRecord {
	return core.EnvironmentRecord{ID: id, Owner: o, State: core.StateActive, CreatedAt: noon, LastActivityAt: noon}
}

func cmd(o core.Owner, environmentID, id string) core.CommandRecord {
	return core.CommandRecord{ID: id, EnvironmentID: environmentID, Owner: o, Command: "true", Cwd: "/workspace", StartedAt: noon}
}

// exited is the end of a command that did its work.
func exited(code int) core.CommandEnd {
	at, cpu, memory := noon.Add(time.Second), int64(3), int64(4096)
	return core.CommandEnd{Status: core.CommandExited, ExitCode: &code, EndedAt: &at, Usage: &core.CommandUsage{CPUMS: &cpu, PeakMemoryBytes: &memory}}
}

func mustCreate(tb testing.TB, s *Store, o core.Owner, ids ...string) {
	tb.Helper()
	for _, id := range ids {
		if _, _, err := s.CreateEnvironment(context.Background(), env(o, id), plenty, noUIDs, noKey); err != nil {
			tb.Fatal(err)
		}
	}
}

func mustRun(tb testing.TB, s *Store, o core.Owner, environmentID string, ids ...string) {
	tb.Helper()
	for _, id := range ids {
		if _, _, _, err := s.CreateCommand(context.Background(), cmd(o, environmentID, id), 1<<20, noKey); err != nil {
			tb.Fatal(err)
		}
	}
}

func key(n any, fingerprint string) core.Idempotency {
	return core.Idempotency{Operation: "op", Key: fmt.Sprint(n), Fingerprint: fingerprint}
}
