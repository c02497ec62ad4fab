package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheTokenForSettingsAPIMustBeThere(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"good": "tok\n", "empty": "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "good"):  "",
		filepath.Join(dir, "empty"): "it is empty",
		filepath.Join(dir, "none"):  "it cannot be read",
		dir:                         "it cannot be read",
		"good":                      "not an absolute path",
	} {
		s := source(t, "ENVAPI_SETTINGS_URL=http://127.0.0.1:8010", "ENVAPI_SETTINGS_TOKEN_FILE="+path)
		_, err := Load(s)
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "ENVAPI_SETTINGS_TOKEN_FILE") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
		s.Program = ProgramDoctor // whoever runs it may have no business with the token
		if _, err := Load(s); filepath.IsAbs(path) && err != nil {
			t.Errorf("the doctor, %s: %v", path, err)
		}
	}
}
