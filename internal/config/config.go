// Package config reads the settings of the service: environment variables that
// begin with ENVAPI_, and for envapi-http a .env file in the working directory
// whose values the environment overrules. They are read once, at start, and
// checked together; every mistake is named at once.
//
// The table of settings is the struct Config: its tags carry each one's name,
// default, bounds and description, from which .env.example and the page of
// documentation are made.
//
// What it does not protect: the settings hold no secret today, and addresses
// with a password in them are refused. A value is repeated in the text of its
// mistake, except where it may be a secret.
package config

import (
	"log/slog"
	"time"

	"envapi/core"
	"envapi/internal/keyring"
	"envapi/sandbox"
)

// Config is the settings, checked. In its tags, env is the name after ENVAPI_,
// default what holds where nothing is set, allowed what a value may be where
// min and max do not say it, doc the description.
type Config struct {
	Addr    string `env:"ADDR" default:":8008" allowed:"host:port, or :port for every address" doc:"Where envapi-http listens. With --dev the default is 127.0.0.1:8008, and only a loopback address is accepted."`
	DataDir string `env:"DATA_DIR" allowed:"an absolute path" doc:"The data folder. Default: /var/lib/envapi as root, else $XDG_STATE_HOME/envapi or ~/.local/state/envapi; for envapi-mcp the same with envapi-local, so that both can run."`

	KeyringURL     string        `env:"KEYRING_URL" allowed:"an https address, http on loopback only" doc:"Where keyring is, whose tokens envapi-http accepts. Required, except with --dev."`
	KeyringIssuer  string        `env:"KEYRING_ISSUER" allowed:"any text without spaces" doc:"The iss that tokens must have, exactly. Default: ENVAPI_KEYRING_URL as it is written."`
	KeyringJWKSURL string        `env:"KEYRING_JWKS_URL" allowed:"an https address, http on loopback only" doc:"Where keyring's public keys are. Default: /.well-known/jwks.json below ENVAPI_KEYRING_URL."`
	Audience       string        `env:"AUDIENCE" default:"envapi" allowed:"any text without spaces" doc:"The aud that tokens must have or contain."`
	TokenTypes     []string      `env:"TOKEN_TYPES" default:"at+jwt" allowed:"at+jwt, JWT or both with a comma" doc:"The header typ that tokens may have."`
	KeyringStale   time.Duration `env:"KEYRING_STALE_MS" default:"86400000" min:"60000" max:"604800000" doc:"How long the keys in hand serve after keyring was last reached. After that no token is accepted."`

	SandboxTier    Tier     `env:"SANDBOX_TIER" default:"auto" allowed:"auto, directory, user or namespace" doc:"What contains commands. auto: the strongest that this host can have. A tier by name: that one, or no start."`
	MinSandboxTier Tier     `env:"MIN_SANDBOX_TIER" allowed:"directory, user or namespace" doc:"The weakest tier to start with. Default: any."`
	AllowNetwork   bool     `env:"ALLOW_NETWORK" default:"false" allowed:"false" doc:"Whether environments may have a network. This version has no controlled way out, so true is refused."`
	Rootfs         string   `env:"ROOTFS" allowed:"an absolute path" doc:"A root file system for the namespace tier. Default: the host's system folders, read-only."`
	CommandPath    string   `env:"COMMAND_PATH" default:"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin" allowed:"absolute paths with : between them" doc:"The PATH of commands."`
	UIDRange       UIDRange `env:"UID_RANGE" default:"2000400000-2000465535" allowed:"FIRST-LAST, both from 65536 to 2147483646" doc:"The host uids that environments get, one each. As root only; they must belong to nothing else on the host, and a service does not start where another one has some of them. Default for envapi-mcp: 2000465536-2000531071, so that both can run."`

	PublicURL    string   `env:"PUBLIC_URL" allowed:"an http or https address without a path" doc:"How clients reach the service, where that is not its own address. Its host is accepted as Host."`
	AllowedHosts []string `env:"ALLOWED_HOSTS" allowed:"host names or addresses with commas between them, each with or without a port" doc:"The Host headers that are accepted. Default: those of a loopback address for what comes in at one, else any."`

	MaxEnvironmentsPerAccount int           `env:"MAX_ENVIRONMENTS_PER_ACCOUNT" default:"100" min:"1" max:"60000" doc:"Environments of an account, all its profiles together."`
	MaxEnvironmentsPerProfile int           `env:"MAX_ENVIRONMENTS_PER_PROFILE" default:"50" min:"1" max:"60000" doc:"Environments of one profile of an account."`
	MaxArchivedEnvironments   int           `env:"MAX_ARCHIVED_ENVIRONMENTS" default:"200" min:"1" max:"60000" doc:"Archived environments of an account, all its profiles together. They do not count as the two above do."`
	MaxRequestsPerSecond      int           `env:"MAX_REQUESTS_PER_SECOND" default:"100" min:"0" max:"1000000" doc:"Requests of an account in a second, over both doors; for a moment twenty times as many. More is 429. 0: as many as come."`
	MaxTerminalsPerAccount    int           `env:"MAX_TERMINALS_PER_ACCOUNT" default:"768" min:"1" max:"100000" doc:"Terminals that an account has open at one time, those of shells and of commands with tty together. The default is a quarter of what the kernel has for all (kernel.pty.max without its reserve)."`
	MaxShells                 int           `env:"MAX_SHELLS" default:"32" min:"1" max:"1000" doc:"Shells that are open at one time in an environment; the namespace tier has terminals for 64. Each is a bash of a few MiB, and one of the processes."`
	MaxRunningCommands        int           `env:"MAX_RUNNING_COMMANDS" default:"32" min:"1" max:"1000" doc:"Commands that run at one time in an environment."`
	MaxProcesses              int           `env:"MAX_PROCESSES" default:"512" min:"16" max:"100000" doc:"Processes at one time in an environment."`
	MaxMemoryBytes            int64         `env:"MAX_MEMORY_BYTES" default:"2147483648" min:"67108864" max:"1099511627776" doc:"Memory of all processes of an environment. The default lets a compiler or a test suite run, and a few environments at once on a machine of 8 GiB."`
	MaxCPUPercent             int           `env:"MAX_CPU_PERCENT" default:"0" min:"0" max:"100000" doc:"What the processes of an environment may take of the processors, in percent of one core. 0: as much as nobody else wants, and else a fair share, so that no core stands idle."`
	MaxDiskBytes              int64         `env:"MAX_DISK_BYTES" default:"5368709120" min:"1048576" max:"1125899906842624" doc:"Disk space of an environment's folder, and the length of its longest file. The default holds a large repository with its dependencies and what is built of it."`
	MaxFiles                  int64         `env:"MAX_FILES" default:"500000" min:"16" max:"100000000" doc:"Files, directories and other entries of an environment's folder. The default is several times what a large project with its dependencies has, and is counted in about a second."`
	MinFreeDiskBytes          int64         `env:"MIN_FREE_DISK_BYTES" default:"0" min:"0" max:"1125899906842624" doc:"What must stay free on the disk of the data folder: below it, environments that go on filling the disk are stopped. 0: 1 GiB, or a twentieth of the disk where that is less."`
	CommandTimeout            time.Duration `env:"COMMAND_TIMEOUT_MS" default:"600000" min:"1" max:"86400000" doc:"When a command is ended that names no timeout_ms. Default: at most ENVAPI_MAX_COMMAND_TIMEOUT_MS."`
	MaxCommandTimeout         time.Duration `env:"MAX_COMMAND_TIMEOUT_MS" default:"86400000" min:"1" max:"86400000" doc:"The longest timeout_ms that a command may name."`
	MaxOutputLogBytes         int64         `env:"MAX_OUTPUT_LOG_BYTES" default:"67108864" min:"65536" max:"1099511627776" doc:"How much output of a command is kept: the first half and the last half of this."`

	ETagMaxBytes int64 `env:"ETAG_MAX_BYTES" default:"268435456" min:"1" max:"1125899906842624" doc:"Up to which size the ETag of a file is given without being asked for, since all of the file must be read for it. Above, etag: true asks for it."`

	ShellIdle            time.Duration `env:"SHELL_IDLE_MS" default:"3600000" min:"1000" max:"31536000000" doc:"How long a shell may be idle before it is closed, where its owner's settings do not say. What counts as use is in docs/operations.md. Default: also within the two below, where they are set."`
	MinShellIdle         time.Duration `env:"MIN_SHELL_IDLE_MS" default:"60000" min:"1000" max:"31536000000" doc:"The shortest that an owner's settings can make it. Default: at most ENVAPI_SHELL_IDLE_MS."`
	MaxShellIdle         time.Duration `env:"MAX_SHELL_IDLE_MS" default:"604800000" min:"1000" max:"31536000000" doc:"The longest that an owner's settings can make it. Default: at least ENVAPI_SHELL_IDLE_MS."`
	EnvironmentIdle      time.Duration `env:"ENVIRONMENT_IDLE_MS" default:"604800000" min:"1000" max:"31536000000" doc:"How long an environment may be idle before it is archived, where neither its idle_ms nor its owner's settings say. Default: also within the two below, where they are set."`
	MinEnvironmentIdle   time.Duration `env:"MIN_ENVIRONMENT_IDLE_MS" default:"600000" min:"1000" max:"31536000000" doc:"The shortest that idle_ms or settings can make it. Default: at most ENVAPI_ENVIRONMENT_IDLE_MS."`
	MaxEnvironmentIdle   time.Duration `env:"MAX_ENVIRONMENT_IDLE_MS" default:"7776000000" min:"1000" max:"31536000000" doc:"The longest that idle_ms or settings can make it. Default: at least ENVAPI_ENVIRONMENT_IDLE_MS."`
	BoxIdle              time.Duration `env:"BOX_IDLE_MS" default:"600000" min:"1000" max:"31536000000" doc:"How long the sandbox of an environment in which nothing lives is kept. The next command makes another, in some milliseconds; what was in /tmp and /dev/shm is gone."`
	CommandRetention     time.Duration `env:"COMMAND_RETENTION_MS" default:"604800000" min:"60000" max:"31536000000" doc:"How long commands that have ended are kept, with their output, and closed shells."`
	IdempotencyRetention time.Duration `env:"IDEMPOTENCY_RETENTION_MS" default:"86400000" min:"60000" max:"31536000000" doc:"How long an idempotency key holds after its first use. At most ENVAPI_COMMAND_RETENTION_MS, as the default is too."`
	ReaperInterval       time.Duration `env:"REAPER_INTERVAL_MS" default:"60000" min:"100" max:"3600000" doc:"How often the reaper looks for what is idle or old."`

	SettingsURL       string `env:"SETTINGS_URL" allowed:"an https address, http on loopback only" doc:"Where settings-api is, which says how long each person's shells and environments may be idle. Default: nowhere, and the deployment's times hold."`
	SettingsTokenFile string `env:"SETTINGS_TOKEN_FILE" allowed:"an absolute path" doc:"The file with the token that settings-api is asked with. It is read each time, so that it can be replaced."`

	MetricsAddr string `env:"METRICS_ADDR" allowed:"host:port, with a host" doc:"Where envapi-http shows its metrics, GET /metrics in the form of Prometheus. They need no token: keep it on a loopback address or a private network. Default: nowhere."`

	StopGrace time.Duration `env:"STOP_GRACE_MS" default:"8000" min:"0" max:"3600000" doc:"How long commands that run may go on when the service is told to stop, so that they come to their own end; see docs/operations.md. What stops the service must wait 20 seconds longer. Default for envapi-mcp: 0, since its client waits for its end."`

	LogLevel  Level  `env:"LOG_LEVEL" default:"info" allowed:"debug, info, warn or error" doc:"What is logged, on standard error."`
	LogFormat string `env:"LOG_FORMAT" default:"text" allowed:"text or json" doc:"How it is logged."`
}

// UIDRange is a range of host uids, the last one included.
type UIDRange struct{ First, Last int }

// Tier is a tier by name; "" means any.
type Tier = sandbox.Tier

// Level is a slog.Level that is read by its plain names alone.
type Level slog.Level

// Level gives it to slog.
func (l Level) Level() slog.Level { return slog.Level(l) }

// UIDs gives the range from which environments get their host uids.
func (c Config) UIDs() core.UIDRange {
	return core.UIDRange{First: c.UIDRange.First, End: c.UIDRange.Last + 1}
}

// Limits gives the quotas and caps of the deployment.
func (c Config) Limits() core.Limits {
	return core.Limits{
		EnvironmentsPerAccount: c.MaxEnvironmentsPerAccount,
		EnvironmentsPerProfile: c.MaxEnvironmentsPerProfile,
		ArchivedEnvironments:   c.MaxArchivedEnvironments,
		Shells:                 c.MaxShells,
		RunningCommands:        c.MaxRunningCommands,
		Processes:              c.MaxProcesses,
		MemoryBytes:            c.MaxMemoryBytes,
		CPUPercent:             c.MaxCPUPercent,
		TerminalsPerAccount:    c.MaxTerminalsPerAccount,
		RequestsPerSecond:      c.MaxRequestsPerSecond,
		DiskBytes:              c.MaxDiskBytes,
		Files:                  c.MaxFiles,
		FreeDiskBytes:          c.MinFreeDiskBytes,
		ETagBytes:              c.ETagMaxBytes,
		DefaultTimeout:         c.CommandTimeout,
		MaxTimeout:             c.MaxCommandTimeout,
	}
}

// Retention gives how long what nobody uses is kept.
func (c Config) Retention() core.Retention {
	return core.Retention{
		Shell:       core.Bounded{Default: c.ShellIdle, Least: c.MinShellIdle, Most: c.MaxShellIdle},
		Environment: core.Bounded{Default: c.EnvironmentIdle, Least: c.MinEnvironmentIdle, Most: c.MaxEnvironmentIdle},
		Box:         c.BoxIdle,
		Ended:       c.CommandRetention,
		Keys:        c.IdempotencyRetention,
		Every:       c.ReaperInterval,
	}
}

// Keyring gives what a verifier of keyring's tokens is made of, without its log.
func (c Config) Keyring() keyring.Config {
	return keyring.Config{
		JWKSURL:    c.KeyringJWKSURL,
		Issuer:     c.KeyringIssuer,
		Audience:   c.Audience,
		TokenTypes: c.TokenTypes,
		Stale:      c.KeyringStale,
	}
}
