package config

import (
	"errors"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"envapi/internal/keyring"
	"envapi/internal/loopback"
	"envapi/sandbox"
)

// complete fills in the defaults that depend on others.
func complete(c *Config, s Source, vars map[string]string) {
	if s.Dev && vars[prefix+"ADDR"] == "" {
		c.Addr = "127.0.0.1:8008"
	}
	if c.DataDir == "" {
		c.DataDir = defaultDataDir(s)
	}
	if c.KeyringIssuer == "" {
		c.KeyringIssuer = c.KeyringURL
	}
	if c.KeyringJWKSURL == "" && c.KeyringURL != "" {
		c.KeyringJWKSURL = strings.TrimRight(c.KeyringURL, "/") + "/.well-known/jwks.json"
	}
	if vars[prefix+"COMMAND_TIMEOUT_MS"] == "" {
		c.CommandTimeout = min(c.CommandTimeout, c.MaxCommandTimeout)
	}
	completeTimes(c, vars)
	if s.Program == ProgramMCP && vars[prefix+"UID_RANGE"] == "" {
		c.UIDRange = UIDRange{First: 2000465536, Last: 2000531071} // beside those of envapi-http
	}
	if s.Program == ProgramMCP && vars[prefix+"STOP_GRACE_MS"] == "" {
		c.StopGrace = 0 // its client waits for its end
	}
	if !s.Root {
		c.UIDRange = UIDRange{First: 0, Last: -1} // only root can give uids away
	}
}

// completeTimes has the defaults of idle times, and of their bounds, and of the keys'
// retention, go along with what is set.
func completeTimes(c *Config, vars map[string]string) {
	unset := func(name string) bool { return vars[prefix+name] == "" }
	for _, t := range []struct {
		name                  string
		usual, least, longest *time.Duration
	}{
		{"SHELL_IDLE_MS", &c.ShellIdle, &c.MinShellIdle, &c.MaxShellIdle},
		{"ENVIRONMENT_IDLE_MS", &c.EnvironmentIdle, &c.MinEnvironmentIdle, &c.MaxEnvironmentIdle},
	} {
		if unset(t.name) && !unset("MIN_"+t.name) {
			*t.usual = max(*t.usual, *t.least)
		}
		if unset(t.name) && !unset("MAX_"+t.name) {
			*t.usual = min(*t.usual, *t.longest)
		}
		if unset("MIN_" + t.name) {
			*t.least = min(*t.least, *t.usual, *t.longest)
		}
		if unset("MAX_" + t.name) {
			*t.longest = max(*t.longest, *t.usual, *t.least)
		}
	}
	if unset("IDEMPOTENCY_RETENTION_MS") {
		c.IdempotencyRetention = min(c.IdempotencyRetention, c.CommandRetention)
	}
}

// defaultDataDir gives "" where there is no home folder.
func defaultDataDir(s Source) string {
	name := "envapi"
	if s.Program == ProgramMCP {
		name = "envapi-local"
	}
	if s.Root {
		return filepath.Join("/var/lib", name)
	}
	if state := s.lookup("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, name)
	}
	if home := s.lookup("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", name)
	}
	return ""
}

// lookup gives a variable of the environment, the last one where it is repeated.
func (s Source) lookup(name string) string {
	value := ""
	for _, entry := range s.Environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}

// checks collects the mistakes in values that could be read.
type checks struct {
	mistakes []error
	vars     map[string]string
	skip     map[string]error // variables that have a mistake already
}

// that notes a problem ("" is none) with the setting of a field.
func (k *checks) that(fieldName, problem string) {
	f := field(fieldName)
	if name := nameOf(f); problem != "" && k.skip[name] == nil {
		k.mistakes = append(k.mistakes, mistake(f, k.shown(name), problem))
	}
}

// shown gives a value for the text of a mistake, without a password.
func (k *checks) shown(name string) string {
	value := k.vars[name]
	if strings.Contains(value, "@") {
		return "(hidden)"
	}
	return value
}

// check gives the mistakes of settings one by one, then of settings together.
func check(c Config, s Source, vars map[string]string, wrong map[string]error) []error {
	k := &checks{vars: vars, skip: wrong}
	k.that("Addr", badAddr(c.Addr))
	k.that("MetricsAddr", badMetricsAddr(c.MetricsAddr))
	if s.Program != ProgramDoctor {
		k.that("DataDir", badPath(c.DataDir))
	}
	k.that("KeyringURL", badKeyringURL(c.KeyringURL))
	k.that("KeyringIssuer", badWord(c.KeyringIssuer))
	k.that("KeyringJWKSURL", badKeyringURL(vars[prefix+"KEYRING_JWKS_URL"]))
	k.that("Audience", badWord(c.Audience))
	k.that("TokenTypes", badTypes(c.TokenTypes))
	k.that("Rootfs", badPath(orRoot(c.Rootfs)))
	k.that("CommandPath", badSearchPath(c.CommandPath))
	k.that("PublicURL", badPublicURL(c.PublicURL))
	k.that("AllowedHosts", badHosts(c.AllowedHosts))
	k.that("LogFormat", unless(c.LogFormat == "text" || c.LogFormat == "json", "there is no such format"))
	k.that("AllowNetwork", unless(!c.AllowNetwork, "this version has no controlled way out for environments"))
	k.that("UIDRange", unless(s.Root || vars[prefix+"UID_RANGE"] == "", "only root can give uids to environments"))
	k.settingsAPI(c, s)
	k.together(c, s)
	return k.mistakes
}

// together notes the mistakes that lie between settings.
func (k *checks) together(c Config, s Source) {
	k.that("CommandTimeout", unless(c.CommandTimeout <= c.MaxCommandTimeout || k.skip[prefix+"MAX_COMMAND_TIMEOUT_MS"] != nil,
		"above ENVAPI_MAX_COMMAND_TIMEOUT_MS"))
	k.within("ShellIdle", c.ShellIdle, c.MinShellIdle, c.MaxShellIdle)
	k.within("EnvironmentIdle", c.EnvironmentIdle, c.MinEnvironmentIdle, c.MaxEnvironmentIdle)
	k.that("IdempotencyRetention", unless(c.IdempotencyRetention <= c.CommandRetention || k.skip[prefix+"COMMAND_RETENTION_MS"] != nil,
		"above ENVAPI_COMMAND_RETENTION_MS: a key would outlive what it stands for"))
	k.that("SandboxTier", unless(c.SandboxTier == "" || strength(c.SandboxTier) >= strength(c.MinSandboxTier),
		"weaker than ENVAPI_MIN_SANDBOX_TIER"))
	if s.Program != ProgramHTTP {
		return
	}
	if s.Dev {
		k.that("KeyringURL", unless(c.KeyringURL == "", "with --dev a stand-in takes keyring's place: leave one of the two out"))
		k.that("Addr", unless(badAddr(c.Addr) != "" || onLoopback(c.Addr), "with --dev the service must listen on a loopback address, such as 127.0.0.1:8008"))
		k.that("MetricsAddr", unless(badMetricsAddr(c.MetricsAddr) != "" || c.MetricsAddr == "" || onLoopback(c.MetricsAddr), "with --dev metrics must be on a loopback address, such as 127.0.0.1:9008"))
		return
	}
	if c.KeyringURL == "" && k.skip[prefix+"KEYRING_URL"] == nil {
		k.mistakes = append(k.mistakes, errors.New("ENVAPI_KEYRING_URL is not set: name the keyring whose tokens to accept, or start with --dev to try the service on this machine alone"))
	}
}

// within notes where a time is outside of its bounds, or those are no bounds.
func (k *checks) within(fieldName string, usual, least, longest time.Duration) {
	name := strings.TrimPrefix(nameOf(field(fieldName)), prefix)
	minimum, maximum := prefix+"MIN_"+name, prefix+"MAX_"+name
	if k.skip[minimum] != nil || k.skip[maximum] != nil {
		return
	}
	switch {
	case least > longest:
		k.that("Min"+fieldName, "above "+maximum)
	case usual < least:
		k.that(fieldName, "below "+minimum)
	case usual > longest:
		k.that(fieldName, "above "+maximum)
	}
}

func strength(t Tier) int { return slices.Index(sandbox.Tiers, t) }

func unless(ok bool, problem string) string {
	if ok {
		return ""
	}
	return problem
}

func orRoot(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

func badAddr(addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "not an address to listen on"
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return unless(err == nil, "its port is not a number from 0 to 65535")
}

// badMetricsAddr is about a listener without tokens: that it is to be reached from
// everywhere must be said.
func badMetricsAddr(addr string) string {
	if addr == "" {
		return ""
	}
	if problem := badAddr(addr); problem != "" {
		return problem
	}
	return unless(!strings.HasPrefix(addr, ":"), "it names no host: metrics need no token, so say for whom they are, such as 127.0.0.1"+addr)
}

// onLoopback says whether an address is on this machine alone.
func onLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && loopback.Is(host)
}

func badPath(path string) string {
	return unless(filepath.IsAbs(path), "not an absolute path")
}

func badSearchPath(list string) string {
	for _, path := range strings.Split(list, ":") {
		if !filepath.IsAbs(path) {
			return "holds what is not an absolute path"
		}
	}
	return ""
}

func badKeyringURL(raw string) string {
	if raw == "" {
		return ""
	}
	if err := keyring.CheckURL(raw); err != nil {
		return err.Error()
	}
	return ""
}

func badPublicURL(raw string) string {
	if raw == "" {
		return ""
	}
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "not an absolute http or https address"
	}
	bare := url.URL{Scheme: u.Scheme, Host: u.Host}
	return unless(bare.String() == strings.TrimSuffix(raw, "/"), "holds more than a scheme, a host and a port")
}

func badHosts(hosts []string) string {
	for _, host := range hosts {
		u, err := url.Parse("http://" + host)
		if err != nil || host == "" || u.Host != host || strings.Contains(host, "*") {
			return "holds what is not a host name"
		}
	}
	return ""
}

func badTypes(types []string) string {
	for _, t := range types {
		if t != keyring.TypeAccessToken && t != keyring.TypeJWT {
			return "there is no such type of token"
		}
	}
	return ""
}

func badWord(s string) string {
	hidden := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	return unless(strings.IndexFunc(s, hidden) < 0, "holds a space or a character that cannot be seen")
}
