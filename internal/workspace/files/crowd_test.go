package files_test

import (
	"context"
	"os"
	"testing"
	"time"

	"envapi/core"
	"envapi/internal/workspace/files"
	"envapi/internal/workspace/turns"
)

// crowd has an account take all its turns.
func crowd(t *testing.T, all *turns.Turns) context.Context {
	t.Helper()
	busy := core.WithCaller(t.Context(), core.Caller{Owner: core.Owner{Account: "busy"}})
	ctx, cancel := context.WithTimeout(busy, 50*time.Millisecond)
	defer cancel()
	for {
		leave, err := all.Take(ctx)
		if err != nil {
			return busy
		}
		t.Cleanup(leave)
	}
}

// A copy keeps a thread busy, and an ETag of a large file a processor: of one account
// there are a few at a time.
func TestOneAccountDoesNotKeepOthersWaiting(t *testing.T) {
	k := newKit(t)
	k.put("file", "text", 0o644)
	k.put("large", "", 0o644)
	must(t, os.Truncate(k.path+"/large", files.LargeBytes+1))
	busy := crowd(t, files.Copies)
	crowd(t, files.LargeTags)
	options := core.CopyOptions{Limit: 1 << 20, Files: 10}
	late, cancel := context.WithTimeout(busy, time.Millisecond)
	defer cancel()
	_, _, err := k.tree.Copy(late, "file", "copy", options)
	wantCode(t, err, core.CodeRateLimited)
	_, err = k.tree.Stat(late, "large", true)
	wantCode(t, err, core.CodeRateLimited)
	_, err = k.tree.Stat(busy, "file", true)
	must(t, err)
	_, _, err = k.tree.Copy(t.Context(), "file", "copy", options)
	must(t, err)
	_, err = k.tree.Stat(t.Context(), "large", true)
	must(t, err)
}
