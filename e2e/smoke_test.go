package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"

	"envapi/internal/testbin"
)

func TestSmokeDrivesEveryOperation(t *testing.T) {
	onEachTier(t, func(t *testing.T, s *service) {
		smoke := exec.CommandContext(t.Context(), testbin.Path(t, "smoke"),
			"-url", s.url, "-token-file", filepath.Join(s.data, "dev-token"))
		if out, err := smoke.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		if items := s.must(t, "list_environments", object{})["items"].([]any); len(items) != 0 {
			t.Errorf("it left %v", items)
		}
	})
}
