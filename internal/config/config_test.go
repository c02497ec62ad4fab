package config

import (
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"envapi/core"
	"envapi/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is envapi-http run by a user with a keyring, and more variables.
func source(t *testing.T, more ...string) Source {
	t.Helper()
	return Source{
		Program: ProgramHTTP, Dir: t.TempDir(),
		Environ: append([]string{"HOME=/home/u", "PATH=/bin", "ENVAPI_KEYRING_URL=https://keyring.test"}, more...),
	}
}

func TestDefaultsHoldWhereNothingIsSet(t *testing.T) {
	c, err := Load(source(t))
	if err != nil {
		t.Fatal(err)
	}
	for what, ok := range map[string]bool{
		"addr":     c.Addr == ":8008",
		"data":     c.DataDir == "/home/u/.local/state/envapi",
		"issuer":   c.KeyringIssuer == "https://keyring.test",
		"jwks":     c.KeyringJWKSURL == "https://keyring.test/.well-known/jwks.json",
		"audience": c.Audience == "envapi",
		"types":    reflect.DeepEqual(c.TokenTypes, []string{"at+jwt"}),
		"stale":    c.KeyringStale == 24*time.Hour,
		"tier":     c.SandboxTier == "" && c.MinSandboxTier == "",
		"network":  !c.AllowNetwork,
		"uids":     c.UIDs() == core.UIDRange{},
		"log":      c.LogLevel.Level() == slog.LevelInfo && c.LogFormat == "text",
		"output":   c.MaxOutputLogBytes == 64<<20,
		"timeouts": c.Limits().DefaultTimeout == 10*time.Minute && c.Limits().MaxTimeout == 24*time.Hour,
	} {
		if !ok {
			t.Errorf("%s: %+v", what, c)
		}
	}
}

func TestTheLocalProgramHasNoGraceUnlessItIsSet(t *testing.T) {
	for _, c := range []struct {
		program Program
		set     string
		want    time.Duration
	}{
		{ProgramHTTP, "", 8 * time.Second}, {ProgramHTTP, "0", 0}, {ProgramMCP, "", 0}, {ProgramMCP, "5000", 5 * time.Second},
	} {
		s := source(t, "ENVAPI_STOP_GRACE_MS="+c.set)
		s.Program = c.program
		got, err := Load(s)
		if err != nil || got.StopGrace != c.want {
			t.Errorf("%s with %q: %v, %v", c.program, c.set, got.StopGrace, err)
		}
	}
}

func TestTheTwoProgramsHaveNoHostUIDInCommon(t *testing.T) {
	s := source(t)
	s.Root = true
	http, err := Load(s)
	if err != nil {
		t.Fatal(err)
	}
	s.Program = ProgramMCP
	local, err := Load(s)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := http.UIDs(), local.UIDs(); a != (core.UIDRange{First: 2000400000, End: 2000465536}) || b.First < a.End || b.End <= b.First {
		t.Errorf("%+v and %+v", a, b)
	}
	// What useradd gives for containers (subuid(5), to 600100000), systemd-nspawn
	// (to 1879048191) and sssd for a directory's users lies below: a service ends
	// whatever has a uid of its range.
	const sssd = 2_000_200_000
	if http.UIDs().First <= sssd || local.UIDs().First <= sssd {
		t.Errorf("%+v and %+v may be somebody's", http.UIDs(), local.UIDs())
	}
	s.Environ = append(s.Environ, "ENVAPI_UID_RANGE=300000-300009")
	if local, err = Load(s); err != nil || local.UIDs().First != 300000 {
		t.Errorf("what is set: %+v, %v", local.UIDs(), err)
	}
}

func TestEverySettingIsRead(t *testing.T) {
	tokenFile := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokenFile, []byte("t"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := source(t,
		"ENVAPI_ADDR=127.0.0.1:1", "ENVAPI_DATA_DIR=/d", "ENVAPI_KEYRING_ISSUER=iss", "ENVAPI_KEYRING_JWKS_URL=http://127.0.0.1/k",
		"ENVAPI_AUDIENCE=aud", "ENVAPI_TOKEN_TYPES=at+jwt,JWT", "ENVAPI_KEYRING_STALE_MS=60000",
		"ENVAPI_SANDBOX_TIER=namespace", "ENVAPI_MIN_SANDBOX_TIER=directory", "ENVAPI_ALLOW_NETWORK=false", "ENVAPI_ROOTFS=/r",
		"ENVAPI_COMMAND_PATH=/a:/b", "ENVAPI_UID_RANGE=300000-300009", "ENVAPI_PUBLIC_URL=https://e.test:8443", "ENVAPI_ALLOWED_HOSTS=a.test,b.test:1",
		"ENVAPI_MAX_ENVIRONMENTS_PER_ACCOUNT=4", "ENVAPI_MAX_ENVIRONMENTS_PER_PROFILE=3", "ENVAPI_MAX_SHELLS=6", "ENVAPI_MAX_RUNNING_COMMANDS=2", "ENVAPI_MAX_PROCESSES=17",
		"ENVAPI_MAX_MEMORY_BYTES=67108864", "ENVAPI_MAX_CPU_PERCENT=150", "ENVAPI_MAX_DISK_BYTES=1048576", "ENVAPI_MAX_FILES=16", "ENVAPI_MIN_FREE_DISK_BYTES=1",
		"ENVAPI_COMMAND_TIMEOUT_MS=5", "ENVAPI_MAX_COMMAND_TIMEOUT_MS=6", "ENVAPI_MAX_OUTPUT_LOG_BYTES=65536", "ENVAPI_ETAG_MAX_BYTES=7",
		"ENVAPI_MAX_ARCHIVED_ENVIRONMENTS=8", "ENVAPI_MAX_REQUESTS_PER_SECOND=9", "ENVAPI_MAX_TERMINALS_PER_ACCOUNT=10",
		"ENVAPI_SHELL_IDLE_MS=2000", "ENVAPI_MIN_SHELL_IDLE_MS=1000", "ENVAPI_MAX_SHELL_IDLE_MS=3000",
		"ENVAPI_ENVIRONMENT_IDLE_MS=5000", "ENVAPI_MIN_ENVIRONMENT_IDLE_MS=4000", "ENVAPI_MAX_ENVIRONMENT_IDLE_MS=6000",
		"ENVAPI_BOX_IDLE_MS=7000", "ENVAPI_COMMAND_RETENTION_MS=80000", "ENVAPI_IDEMPOTENCY_RETENTION_MS=70000", "ENVAPI_REAPER_INTERVAL_MS=100",
		"ENVAPI_SETTINGS_URL=https://settings.test", "ENVAPI_SETTINGS_TOKEN_FILE="+tokenFile,
		"ENVAPI_METRICS_ADDR=127.0.0.1:2", "ENVAPI_STOP_GRACE_MS=11",
		"ENVAPI_LOG_LEVEL=debug", "ENVAPI_LOG_FORMAT=json")
	s.Root = true
	got, err := Load(s)
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Addr: "127.0.0.1:1", DataDir: "/d", KeyringURL: "https://keyring.test", KeyringIssuer: "iss", KeyringJWKSURL: "http://127.0.0.1/k",
		Audience: "aud", TokenTypes: []string{"at+jwt", "JWT"}, KeyringStale: time.Minute,
		SandboxTier: sandbox.TierNamespace, MinSandboxTier: sandbox.TierDirectory, Rootfs: "/r",
		CommandPath: "/a:/b", UIDRange: UIDRange{300000, 300009}, PublicURL: "https://e.test:8443", AllowedHosts: []string{"a.test", "b.test:1"},
		MaxEnvironmentsPerAccount: 4, MaxEnvironmentsPerProfile: 3, MaxShells: 6, MaxRunningCommands: 2, MaxProcesses: 17,
		MaxMemoryBytes: 64 << 20, MaxCPUPercent: 150, MaxDiskBytes: 1 << 20, MaxFiles: 16, MinFreeDiskBytes: 1,
		CommandTimeout: 5 * time.Millisecond, MaxCommandTimeout: 6 * time.Millisecond, MaxOutputLogBytes: 65536, ETagMaxBytes: 7,
		MaxArchivedEnvironments: 8, MaxRequestsPerSecond: 9, MaxTerminalsPerAccount: 10,
		ShellIdle: 2 * time.Second, MinShellIdle: time.Second, MaxShellIdle: 3 * time.Second,
		EnvironmentIdle: 5 * time.Second, MinEnvironmentIdle: 4 * time.Second, MaxEnvironmentIdle: 6 * time.Second,
		BoxIdle: 7 * time.Second, CommandRetention: 80 * time.Second, IdempotencyRetention: 70 * time.Second, ReaperInterval: 100 * time.Millisecond,
		SettingsURL: "https://settings.test", SettingsTokenFile: tokenFile,
		MetricsAddr: "127.0.0.1:2", StopGrace: 11 * time.Millisecond,
		LogLevel: Level(slog.LevelDebug), LogFormat: "json",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got.UIDs() != (core.UIDRange{First: 300000, End: 300010}) {
		t.Errorf("uids %+v", got.UIDs())
	}
	if l := got.Limits(); l.MemoryBytes != 64<<20 || l.CPUPercent != 150 || l.DiskBytes != 1<<20 || l.Files != 16 || l.FreeDiskBytes != 1 || l.ETagBytes != 7 {
		t.Errorf("limits %+v", l)
	}
	retention := core.Retention{
		Shell:       core.Bounded{Default: 2 * time.Second, Least: time.Second, Most: 3 * time.Second},
		Environment: core.Bounded{Default: 5 * time.Second, Least: 4 * time.Second, Most: 6 * time.Second},
		Box:         7 * time.Second, Ended: 80 * time.Second, Keys: 70 * time.Second, Every: 100 * time.Millisecond,
	}
	if got.Retention() != retention {
		t.Errorf("retention %+v", got.Retention())
	}
	if l := got.Limits(); l.ArchivedEnvironments != 8 || l.RequestsPerSecond != 9 || l.TerminalsPerAccount != 10 {
		t.Errorf("limits %+v", l)
	}
	if len(s.Environ)-2 != len(fields) {
		t.Errorf("this test sets %d of %d settings", len(s.Environ)-2, len(fields))
	}
}

func TestDefaultDataFolder(t *testing.T) {
	for _, c := range []struct {
		name    string
		root    bool
		program Program
		environ []string
		want    string
	}{
		{"a user's", false, ProgramHTTP, []string{"HOME=/home/u"}, "/home/u/.local/state/envapi"},
		{"of envapi-mcp", false, ProgramMCP, []string{"HOME=/home/u"}, "/home/u/.local/state/envapi-local"},
		{"by XDG", false, ProgramHTTP, []string{"HOME=/home/u", "XDG_STATE_HOME=/s"}, "/s/envapi"},
		{"relative XDG does not count", false, ProgramHTTP, []string{"HOME=/home/u", "XDG_STATE_HOME=s"}, "/home/u/.local/state/envapi"},
		{"root's", true, ProgramHTTP, []string{"HOME=/root"}, "/var/lib/envapi"},
		{"root's of envapi-mcp", true, ProgramMCP, nil, "/var/lib/envapi-local"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Load(Source{Program: c.program, Root: c.root, Dir: t.TempDir(), Environ: append(c.environ, "ENVAPI_KEYRING_URL=https://keyring.test")})
			if err != nil || got.DataDir != c.want {
				t.Errorf("got %q, %v; want %q", got.DataDir, err, c.want)
			}
		})
	}
}

func TestMistakesSayVariableProblemAndWhatIsAllowed(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"ENVAPI_ADDR=8008", `ENVAPI_ADDR="8008": not an address to listen on; allowed: host:port, or :port for every address`},
		{"ENVAPI_ADDR=:65536", "its port is not a number from 0 to 65535"},
		{"ENVAPI_ADDR=:http", "its port is not a number"},
		{"ENVAPI_DATA_DIR=data", `ENVAPI_DATA_DIR="data": not an absolute path`},
		{"ENVAPI_KEYRING_URL=http://keyring.test", "must be https, except on a loopback address"},
		{"ENVAPI_KEYRING_URL=keyring.test", "not an absolute http or https address"},
		{"ENVAPI_KEYRING_JWKS_URL=http://10.0.0.1/jwks", "must be https"},
		{"ENVAPI_KEYRING_ISSUER=a b", "holds a space"},
		{"ENVAPI_AUDIENCE=a\tb", "holds a space"},
		{"ENVAPI_TOKEN_TYPES=at+jwt,id+jwt", "there is no such type of token"},
		{"ENVAPI_TOKEN_TYPES=at+jwt, JWT", "there is no such type of token"},
		{"ENVAPI_KEYRING_STALE_MS=59999", "too small; allowed: 60000 to 604800000"},
		{"ENVAPI_KEYRING_STALE_MS=1h", "not a whole number of milliseconds"},
		{"ENVAPI_KEYRING_STALE_MS=9223372036854775807", "not a whole number of milliseconds"},
		{"ENVAPI_KEYRING_STALE_MS=-9223372036854775808", "too small"},
		{"ENVAPI_SANDBOX_TIER=gvisor", "there is no such tier; allowed: auto, directory, user or namespace"},
		{"ENVAPI_MIN_SANDBOX_TIER=strong", "there is no such tier"},
		{"ENVAPI_ALLOW_NETWORK=true", "no controlled way out"},
		{"ENVAPI_ALLOW_NETWORK=yes", "neither true nor false"},
		{"ENVAPI_ROOTFS=rootfs", "not an absolute path"},
		{"ENVAPI_COMMAND_PATH=/bin::/usr/bin", "holds what is not an absolute path"},
		{"ENVAPI_COMMAND_PATH=bin", "holds what is not an absolute path"},
		{"ENVAPI_UID_RANGE=200000-265535", "only root can give uids to environments"},
		{"ENVAPI_UID_RANGE=1000-2000", "out of range"},
		{"ENVAPI_UID_RANGE=200000", "not two whole numbers"},
		{"ENVAPI_UID_RANGE=300000-200000", "the last is below the first"},
		{"ENVAPI_UID_RANGE=200000-4294967294", "out of range"},
		{"ENVAPI_PUBLIC_URL=e.test", "not an absolute http or https address"},
		{"ENVAPI_PUBLIC_URL=https://e.test/path", "holds more than"},
		{"ENVAPI_PUBLIC_URL=https://e.test?x=1", "holds more than"},
		{"ENVAPI_ALLOWED_HOSTS=*.test", "holds what is not a host name"},
		{"ENVAPI_ALLOWED_HOSTS=https://e.test", "holds what is not a host name"},
		{"ENVAPI_ALLOWED_HOSTS=a.test,,b.test", "holds what is not a host name"},
		{"ENVAPI_MAX_PROCESSES=many", "not a whole number; allowed: 16 to 100000"},
		{"ENVAPI_MAX_PROCESSES=15", "too small"},
		{"ENVAPI_MAX_RUNNING_COMMANDS=-1", "too small"},
		{"ENVAPI_MAX_RUNNING_COMMANDS=1.5", "not a whole number"},
		{"ENVAPI_MAX_ENVIRONMENTS_PER_ACCOUNT=99999999999999999999", "not a whole number"},
		{"ENVAPI_MAX_ENVIRONMENTS_PER_PROFILE=60001", "too large"},
		{"ENVAPI_COMMAND_TIMEOUT_MS=0", "too small"},
		{"ENVAPI_MAX_COMMAND_TIMEOUT_MS=86400001", "too large"},
		{"ENVAPI_MAX_OUTPUT_LOG_BYTES=1", "too small"},
		{"ENVAPI_REAPER_INTERVAL_MS=0", "too small; allowed: 100 to 3600000"},
		{"ENVAPI_BOX_IDLE_MS=10m", "not a whole number of milliseconds"},
		{"ENVAPI_COMMAND_RETENTION_MS=1", "too small"},
		{"ENVAPI_MAX_REQUESTS_PER_SECOND=-1", "too small"},
		{"ENVAPI_MAX_TERMINALS_PER_ACCOUNT=0", "too small"},
		{"ENVAPI_SETTINGS_URL=http://settings.test", "must be https, except on a loopback address"},
		{"ENVAPI_SETTINGS_URL=settings.test", "not an absolute http or https address"},
		{"ENVAPI_SETTINGS_URL=https://u:hunter2@settings.test", `ENVAPI_SETTINGS_URL="(hidden)": must not hold a user name or password`},
		{"ENVAPI_SETTINGS_URL=https://settings.test/?a=b", "must not have a query"},
		{"ENVAPI_SETTINGS_URL=https://settings.test/?", "must not have a query"},
		{"ENVAPI_SETTINGS_URL=https://settings.test/#a", "must not have a fragment"},
		{"ENVAPI_SETTINGS_TOKEN_FILE=/dev/null", "there is no ENVAPI_SETTINGS_URL to send the token to"},
		{"ENVAPI_METRICS_ADDR=9008", "not an address to listen on"},
		{"ENVAPI_METRICS_ADDR=127.0.0.1:x", "its port is not a number"},
		{"ENVAPI_METRICS_ADDR=:9008", "it names no host: metrics need no token, so say for whom they are, such as 127.0.0.1:9008; allowed: host:port, with a host"},
		{"ENVAPI_LOG_LEVEL=loud", "there is no such level; allowed: debug, info, warn or error"},
		{"ENVAPI_LOG_FORMAT=xml", "there is no such format"},
		{"ENVAPI_MAX_PROCESES=9", "ENVAPI_MAX_PROCESES: there is no such setting; the nearest is ENVAPI_MAX_PROCESSES"},
		{"ENVAPI_DATADIR=/x", "the nearest is ENVAPI_DATA_DIR"},
	} {
		t.Run(c.set, func(t *testing.T) {
			_, err := Load(source(t, c.set))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v\nwant …%s…", err, c.want)
			}
			if n := strings.Count(err.Error(), "\n") + 1; n != 1 {
				t.Errorf("one mistake is named %d times:\n%v", n, err)
			}
		})
	}
}

func TestAllMistakesAreNamedAtOnce(t *testing.T) {
	_, err := Load(Source{Program: ProgramHTTP, Dir: t.TempDir(), Environ: []string{
		"ENVAPI_ADDR=x", "ENVAPI_MAX_PROCESSES=x", "ENVAPI_LOG_LEVEL=x", "ENVAPI_NONSENSE=x",
		"ENVAPI_SANDBOX_TIER=directory", "ENVAPI_MIN_SANDBOX_TIER=namespace",
	}})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"ENVAPI_ADDR", "ENVAPI_MAX_PROCESSES", "ENVAPI_LOG_LEVEL", "ENVAPI_NONSENSE", "ENVAPI_DATA_DIR",
		"ENVAPI_KEYRING_URL is not set", "--dev", "weaker than ENVAPI_MIN_SANDBOX_TIER",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not named in:\n%v", want, err)
		}
	}
}

func TestTheDefaultTimeoutStaysWithinTheLongest(t *testing.T) {
	c, err := Load(source(t, "ENVAPI_MAX_COMMAND_TIMEOUT_MS=1000"))
	if err != nil || c.CommandTimeout != time.Second {
		t.Errorf("the longest alone: %v, %v", c.CommandTimeout, err)
	}
	_, err = Load(source(t, "ENVAPI_MAX_COMMAND_TIMEOUT_MS=1000", "ENVAPI_COMMAND_TIMEOUT_MS=1001"))
	if err == nil || !strings.Contains(err.Error(), `ENVAPI_COMMAND_TIMEOUT_MS="1001": above ENVAPI_MAX_COMMAND_TIMEOUT_MS`) {
		t.Errorf("both: %v", err)
	}
}

func TestTimesStayWithinTheirBounds(t *testing.T) {
	const hour = "3600000"
	for _, c := range []struct {
		name string
		set  []string
		want string // of the mistake; "" for none
	}{
		{"defaults", nil, ""},
		{"a short time alone takes its bound along", []string{"ENVAPI_SHELL_IDLE_MS=1000", "ENVAPI_ENVIRONMENT_IDLE_MS=1000"}, ""},
		{"a long time alone likewise", []string{"ENVAPI_SHELL_IDLE_MS=31536000000", "ENVAPI_ENVIRONMENT_IDLE_MS=31536000000"}, ""},
		{"a bound alone takes the time along", []string{"ENVAPI_MAX_SHELL_IDLE_MS=30000", "ENVAPI_MIN_ENVIRONMENT_IDLE_MS=31536000000"}, ""},
		{"a short retention takes that of keys along", []string{"ENVAPI_COMMAND_RETENTION_MS=" + hour}, ""},
		{"below", []string{"ENVAPI_SHELL_IDLE_MS=1000", "ENVAPI_MIN_SHELL_IDLE_MS=2000"}, `ENVAPI_SHELL_IDLE_MS="1000": below ENVAPI_MIN_SHELL_IDLE_MS`},
		{"above", []string{"ENVAPI_ENVIRONMENT_IDLE_MS=3000", "ENVAPI_MAX_ENVIRONMENT_IDLE_MS=2000"}, `ENVAPI_ENVIRONMENT_IDLE_MS="3000": above ENVAPI_MAX_ENVIRONMENT_IDLE_MS`},
		{"bounds the wrong way round", []string{"ENVAPI_MIN_SHELL_IDLE_MS=3000", "ENVAPI_MAX_SHELL_IDLE_MS=2000"}, `ENVAPI_MIN_SHELL_IDLE_MS="3000": above ENVAPI_MAX_SHELL_IDLE_MS`},
		{"keys that outlive commands", []string{"ENVAPI_COMMAND_RETENTION_MS=" + hour, "ENVAPI_IDEMPOTENCY_RETENTION_MS=3600001"}, `ENVAPI_IDEMPOTENCY_RETENTION_MS="3600001": above ENVAPI_COMMAND_RETENTION_MS`},
		{"a bound that cannot be read is one mistake", []string{"ENVAPI_SHELL_IDLE_MS=3000", "ENVAPI_MAX_SHELL_IDLE_MS=x"}, "not a whole number of milliseconds"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Load(source(t, c.set...))
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("got %v, want %s alone", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			r := got.Retention()
			for what, b := range map[string]core.Bounded{"shell": r.Shell, "environment": r.Environment} {
				if b.Least > b.Default || b.Default > b.Most {
					t.Errorf("%s: %+v", what, b)
				}
			}
			if r.Keys > r.Ended {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestWithoutKeyringOnlyDevAndMCPStart(t *testing.T) {
	s := Source{Dir: t.TempDir(), Environ: []string{"HOME=/home/u"}}
	s.Program = ProgramHTTP
	if _, err := Load(s); err == nil || !strings.Contains(err.Error(), "ENVAPI_KEYRING_URL") || !strings.Contains(err.Error(), "--dev") {
		t.Errorf("neither: %v", err)
	}
	s.Program = ProgramMCP
	if _, err := Load(s); err != nil {
		t.Errorf("envapi-mcp: %v", err)
	}
	s.Program, s.Dev = ProgramHTTP, true
	if c, err := Load(s); err != nil || c.Addr != "127.0.0.1:8008" {
		t.Errorf("--dev: %v, %v", c.Addr, err)
	}
	s.Environ = append(s.Environ, "ENVAPI_KEYRING_URL=https://keyring.test")
	if _, err := Load(s); err == nil || !strings.Contains(err.Error(), "leave one of the two out") {
		t.Errorf("both: %v", err)
	}
}

func TestDevStaysOnLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:0": true, "[::1]:8008": true, "localhost:8008": true, "127.9.9.9:1": true,
		":8008": false, "0.0.0.0:8008": false, "[::]:8008": false, "192.0.2.1:8008": false, "localhost.evil.test:8008": false,
	} {
		_, err := Load(Source{Program: ProgramHTTP, Dev: true, Dir: t.TempDir(), Environ: []string{"HOME=/home/u", "ENVAPI_ADDR=" + addr}})
		if (err == nil) != want {
			t.Errorf("%s: %v", addr, err)
		}
		_, err = Load(Source{Program: ProgramHTTP, Dev: true, Dir: t.TempDir(), Environ: []string{"HOME=/home/u", "ENVAPI_METRICS_ADDR=" + addr}})
		if (err == nil) != want {
			t.Errorf("metrics at %s: %v", addr, err)
		}
	}
}

func TestTheFileIsReadAndTheEnvironmentOverrulesIt(t *testing.T) {
	s := source(t, "ENVAPI_MAX_PROCESSES=20", "ENVAPI_LOG_LEVEL=")
	file := "# a comment\nENVAPI_MAX_PROCESSES=30\nexport ENVAPI_MAX_RUNNING_COMMANDS=\"7\"\nENVAPI_LOG_LEVEL=debug\nOTHER=x\n"
	if err := os.WriteFile(filepath.Join(s.Dir, ".env"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(s)
	if err != nil || c.MaxProcesses != 20 || c.MaxRunningCommands != 7 || c.LogLevel.Level() != slog.LevelInfo {
		t.Errorf("got %d, %d, %v, %v", c.MaxProcesses, c.MaxRunningCommands, c.LogLevel, err)
	}
}

func TestTheFileIsNotForEnvapiMCP(t *testing.T) {
	s := source(t)
	s.Program = ProgramMCP
	if err := os.WriteFile(filepath.Join(s.Dir, ".env"), []byte("ENVAPI_SANDBOX_TIER=directory\n???"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(s); err != nil || c.SandboxTier != "" {
		t.Errorf("tier %q, %v", c.SandboxTier, err)
	}
}

func TestMistakesInTheFileAreNamed(t *testing.T) {
	for file, want := range map[string]string{
		"ENVAPI_MAX_PROCESSES=x\nENVAPI_FOO=y\n": "ENVAPI_FOO",
		"this is no list\x00":                    "cannot read the file .env",
	} {
		s := source(t)
		if err := os.WriteFile(filepath.Join(s.Dir, ".env"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", file, err)
		}
	}
}

func TestSecretsAreNotRepeated(t *testing.T) {
	for _, set := range []string{
		"ENVAPI_KEYRING_URL=https://u:hunter2@keyring.test", "ENVAPI_KEYRING_JWKS_URL=https://u:hunter2@keyring.test",
		"ENVAPI_PUBLIC_URL=https://u:hunter2@e.test", "ENVAPI_KEYRING_SECRET=hunter2",
	} {
		_, err := Load(source(t, set))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", set, err)
		}
	}
}

func TestGeneratedDocumentsAgreeWithTheSettings(t *testing.T) {
	for name, want := range map[string]func(old string) string{
		".env.example":       func(string) string { return Example() },
		"docs/operations.md": WithTable,
	} {
		old, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil || want(string(old)) != string(old) {
			t.Errorf("%s does not agree with the settings (%v): run make generate", name, err)
		}
	}
}

func TestTheExampleIsLoadedWithoutMistakes(t *testing.T) {
	s := source(t)
	s.Root = true // the example has the uid range
	text := ""
	for line := range strings.Lines(Example()) {
		if strings.HasPrefix(line, "#ENVAPI_") {
			text += line[1:]
		}
	}
	if err := os.WriteFile(filepath.Join(s.Dir, ".env"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Load(s)
	if err != nil {
		t.Fatal(err)
	}
	s.Dir = t.TempDir()
	if want, _ := Load(s); !reflect.DeepEqual(got, want) {
		t.Errorf("the example's values are not the defaults:\n%+v\n%+v", got, want)
	}
}

func TestEverySettingIsDescribed(t *testing.T) {
	for _, f := range fields {
		low, hasLow := f.Tag.Lookup("min")
		if hasLow {
			_, err1 := strconv.ParseInt(low, 10, 64)
			_, err2 := strconv.ParseInt(f.Tag.Get("max"), 10, 64)
			if err1 != nil || err2 != nil {
				t.Errorf("%s: its bounds are not numbers", f.Name)
			}
		}
		if f.Tag.Get("env") == "" || !strings.HasSuffix(f.Tag.Get("doc"), ".") || hasLow == (f.Tag.Get("allowed") != "") {
			t.Errorf("%s: needs a name, a description, and either bounds or words for what is allowed", f.Name)
		}
	}
}
