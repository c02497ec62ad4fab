package core_test

import (
	"os"
	"path/filepath"
	"testing"

	"envapi/core"
)

func TestAPatchTakesNothingAwayThroughALink(t *testing.T) {
	w, env, folders := newFiles(t)
	w.write(env, "real", "1\n")
	for link, target := range map[string]string{"link": "real", "dangling": "nothing"} {
		must(t, os.Symlink(target, filepath.Join(folders.Path(env), link)))
	}
	for name, patch := range map[string]string{
		"delete":           "*** Begin Patch\n*** Delete File: link\n*** End Patch\n",
		"delete, git":      "diff --git a/link b/link\ndeleted file mode 100644\n--- a/link\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n",
		"rename":           "diff --git a/link b/new\nsimilarity index 100%\nrename from link\nrename to new\n",
		"move":             "*** Begin Patch\n*** Update File: link\n*** Move to: new\n@@\n-1\n+2\n*** End Patch\n",
		"delete, dangling": "*** Begin Patch\n*** Delete File: dangling\n*** End Patch\n",
	} {
		for _, dry := range []bool{true, false} {
			_, err := w.ApplyPatch(t.Context(), alice, core.ApplyPatchInput{EnvironmentID: env, Patch: patch, DryRun: dry})
			if err == nil {
				t.Errorf("%s, dry run %v: it was applied", name, dry)
				continue
			}
			wantCode(t, err, core.CodePatchRejected)
		}
	}
	if got := w.text(env, "real").Text; got != "1\n" {
		t.Errorf("the file holds %q", got)
	}
}

func TestAGlobThatNothingCanMatchIsRefused(t *testing.T) {
	w, env, _ := newFiles(t)
	here := core.DirectoryRef{EnvironmentID: env}
	for _, glob := range []string{"/workspace/*.py", "../*", "..", "./*.py"} {
		_, err := w.ListFiles(t.Context(), alice, core.ListFilesInput{DirectoryRef: here, Glob: glob})
		wantField(t, err, "glob")
		_, err = w.SearchFiles(t.Context(), alice, core.SearchFilesInput{DirectoryRef: here, Glob: glob})
		wantField(t, err, "glob")
	}
	for _, glob := range []string{"*.py", "..x", "/*.py", ".github/*", "**/x"} {
		_, err := w.ListFiles(t.Context(), alice, core.ListFilesInput{DirectoryRef: here, Glob: glob})
		must(t, err)
	}
}
