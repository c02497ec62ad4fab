package config

import (
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"envapi/internal/keyring"
)

// settingsAPI notes the mistakes in what is said of settings-api.
func (k *checks) settingsAPI(c Config, s Source) {
	k.that("SettingsURL", badSettingsURL(c.SettingsURL))
	if c.SettingsTokenFile == "" {
		return
	}
	if c.SettingsURL == "" && k.skip[prefix+"SETTINGS_URL"] == nil {
		k.that("SettingsTokenFile", "there is no ENVAPI_SETTINGS_URL to send the token to")
		return
	}
	k.that("SettingsTokenFile", badTokenFile(c.SettingsTokenFile, s))
}

// badSettingsURL is about an address that others are made of.
func badSettingsURL(raw string) string {
	if raw == "" {
		return ""
	}
	if err := keyring.CheckURL(raw); err != nil {
		return err.Error()
	}
	u, err := url.Parse(raw)
	return unless(err == nil && !strings.ContainsAny(raw, "?#") && u.RawQuery == "", "must not have a query, since paths are put behind it")
}

// badTokenFile is about a file that is read again at each use: a mistake in its
// name or mode is told at the start.
func badTokenFile(path string, s Source) string {
	if !filepath.IsAbs(path) {
		return "not an absolute path"
	}
	if s.Program == ProgramDoctor || s.Program == ProgramBackup || s.Program == ProgramCheck { // who may be another user than the service's
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return "it cannot be read"
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return "it cannot be read"
	}
	return unless(strings.TrimSpace(string(text)) != "", "it is empty")
}
