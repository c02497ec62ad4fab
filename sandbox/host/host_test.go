package host_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"envapi/internal/require"
	"envapi/internal/testbin"
	"envapi/sandbox"
	"envapi/sandbox/host"
	"envapi/sandbox/sandboxtest"
)

// TestMain is also the process that looks at a simulated host (hosts_test.go).
func TestMain(m *testing.M) {
	if encoded := os.Getenv(simulation); encoded != "" {
		lookAtSimulated(encoded)
		return
	}
	goleak.VerifyTestMain(testbin.Tests{M: m})
}

func options(t *testing.T) host.Options {
	t.Helper()
	return host.Options{Private: sandboxtest.Folder(t), InitPath: testbin.Init(t), Log: slog.New(slog.DiscardHandler)}
}

func newHost(t *testing.T, o host.Options) *host.Host {
	t.Helper()
	h, err := host.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func available(r sandbox.Report, tier sandbox.Tier) (bool, string) {
	i := slices.IndexFunc(r.Tiers, func(t sandbox.TierReport) bool { return t.Tier == tier })
	return r.Tiers[i].Available, r.Tiers[i].Reason
}

func TestEveryTierReportsEveryControlThatIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/sandbox.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, tier := range newHost(t, options(t)).Report().Tiers {
		if !tier.Available {
			continue
		}
		var names []string
		for _, c := range tier.Controls {
			names = append(names, c.Name)
			if !strings.Contains(string(page), "`"+c.Name+"`") {
				t.Errorf("%s is not on the page", c.Name)
			}
		}
		slices.Sort(names)
		want := []string{
			"capabilities", "core_dumps", "cpu", "descriptors", "file_size", "files", "ipc", "landlock", "memory", "network",
			"no_new_privs", "open_files", "process_ownership", "processes", "processes_hidden", "seccomp", "signals", "terminals", "tmp", "uid", "unix_sockets",
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s: got  %q\nwant %q", tier.Tier, names, want)
		}
	}
}

func TestTheStrongestTierIsTaken(t *testing.T) {
	h := newHost(t, options(t))
	report := h.Report()
	if ok, reason := available(report, sandbox.TierNamespace); !ok {
		require.Feature(t, "userns", reason)
	}
	if h.Tier() != sandbox.TierNamespace || report.Tier != sandbox.TierNamespace || report.SingleAccount {
		t.Errorf("got %+v", report)
	}
	var names []sandbox.Tier
	for _, found := range report.Tiers {
		names = append(names, found.Tier)
	}
	if !slices.Equal(names, sandbox.Tiers) {
		t.Errorf("the report has the tiers %v, not every one, weakest first", names)
	}
	root := os.Geteuid() == 0
	if ok, reason := available(report, sandbox.TierDirectory); ok == root || root && !strings.Contains(reason, "uid 0") {
		t.Errorf("directory: %v, %q", ok, reason)
	}
	if ok, reason := available(report, sandbox.TierUser); ok != root || !root && !strings.Contains(reason, "not root") {
		t.Errorf("user: %v, %q", ok, reason)
	}
	for _, c := range report.Controls {
		if !c.Enforced && c.Detail == "" {
			t.Errorf("control %s is off without a word", c.Name)
		}
	}
}

func TestATierCanBeForced(t *testing.T) {
	forced, other := sandbox.TierDirectory, sandbox.TierUser
	if os.Geteuid() == 0 {
		forced, other = other, forced
	}
	o := options(t)
	o.Tier = forced
	if h := newHost(t, o); h.Tier() != forced {
		t.Errorf("got %s", h.Tier())
	}
	o.Tier = other
	_, err := host.New(t.Context(), o)
	var refusal *host.Refusal
	if !errors.As(err, &refusal) || refusal.Findings.Tier != "" {
		t.Errorf("a tier that cannot be had was forced: %v", err)
	}
}

// withoutNamespaces gives options with which the namespace tier cannot be had:
// there is nothing to run.
func withoutNamespaces(t *testing.T) host.Options {
	t.Helper()
	o := options(t)
	o.Rootfs = t.TempDir()
	return o
}

func TestBelowTheRequiredTierItRefusesWithTheTable(t *testing.T) {
	o := withoutNamespaces(t)
	o.MinTier = sandbox.TierNamespace
	_, err := host.New(t.Context(), o)
	var refusal *host.Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{
		"below the required namespace", host.Table(refusal.Findings),
		"not available", "why:", "to change:", " available\n", "the system's folders must hold bash", "NOT ENFORCED",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "and used") {
		t.Errorf("a tier is said to be used by what does not start:\n%v", err)
	}
}

func TestTheReportKeepsPathsForTheLog(t *testing.T) {
	o := withoutNamespaces(t)
	o.Rootfs = filepath.Join(o.Rootfs, "root")
	if err := os.MkdirAll(filepath.Join(o.Rootfs, "usr"), 0o700); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	ok, reason := available(newHost(t, o).Report(), sandbox.TierNamespace)
	if ok || reason == "" || strings.Contains(reason, o.Rootfs) || strings.Contains(reason, o.Private) {
		t.Errorf("%v, %q", ok, reason)
	}
	if !strings.Contains(log.String(), "tier=namespace") {
		t.Errorf("the log says %q", log.String())
	}
}

func TestEveryAvailableTierSaysWhatItHolds(t *testing.T) {
	report := newHost(t, options(t)).Report()
	for _, found := range report.Tiers {
		switch {
		case found.Available && len(found.Controls) < 15:
			t.Errorf("%s: only %d controls", found.Tier, len(found.Controls))
		case !found.Available && (found.Reason == "" || found.Needs == "" || found.Controls != nil):
			t.Errorf("%s: %+v", found.Tier, found)
		}
		if found.Tier == report.Tier && !slices.Equal(found.Controls, report.Controls) {
			t.Errorf("%s: what the active tier holds is %v, and %v", found.Tier, report.Controls, found.Controls)
		}
	}
}

func TestAnEarlierRunsFoldersThatCannotBeRemovedAreNoReasonNotToStart(t *testing.T) {
	o := options(t)
	closed := filepath.Join(o.Private, "tmp-1", "closed")
	if err := os.MkdirAll(filepath.Join(closed, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	newHost(t, o)
	if left, err := os.ReadDir(o.Private); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// BenchmarkProbes is what a start takes for all tiers; it must stay below half a
// second.
func BenchmarkProbes(b *testing.B) {
	o := host.Options{Private: b.TempDir(), InitPath: testbin.Init(b), Log: slog.New(slog.DiscardHandler)}
	for _, dir := range []string{filepath.Dir(o.Private), o.Private} {
		if err := os.Chmod(dir, 0o711); err != nil {
			b.Fatal(err)
		}
	}
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		h, err := host.New(b.Context(), o)
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
		if err := h.Close(); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms-most")
}

func TestARootFileSystemThatIsNotThereIsRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "none"), file} {
		o := options(t)
		o.Rootfs = path
		h, err := host.New(t.Context(), o)
		if err == nil {
			_ = h.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "the root file system that is set: stat "+path) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func TestTheProbeLeavesNothingAndClearsWhatAnEarlierRunLeft(t *testing.T) {
	o := options(t)
	if err := os.MkdirAll(filepath.Join(o.Private, "tmp-1", "of a killed service"), 0o700); err != nil {
		t.Fatal(err)
	}
	newHost(t, o)
	if left, err := os.ReadDir(o.Private); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestTheServiceIsNotDumpable(t *testing.T) {
	h := newHost(t, options(t))
	dumpable := func() int {
		n, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := dumpable(); n != 0 {
		t.Errorf("got %d", n)
	}
	spec := sandbox.Spec{ID: "x", Workspace: t.TempDir(), Limits: sandbox.Limits{Processes: 64}}
	if h.NeedsUID() {
		spec.UID = 65532
		if err := os.Chown(spec.Workspace, spec.UID, spec.UID); err != nil {
			t.Fatal(err)
		}
	}
	box, err := h.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	if n := dumpable(); n != 0 {
		t.Errorf("after a box was made: got %d", n)
	}
	var out bytes.Buffer
	p, err := box.Start(t.Context(), sandbox.Command{Script: "echo ok", Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if out.String() != "ok\n" {
		t.Errorf("got %q", out.String())
	}
}
