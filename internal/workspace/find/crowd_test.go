package find_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"envapi/core"
	"envapi/internal/workspace/find"
	"envapi/internal/workspace/turns"
)

func caller(ctx context.Context, account string) context.Context {
	return core.WithCaller(ctx, core.Caller{Owner: core.Owner{Account: account}})
}

// crowd has an account take all its turns, which are so many.
func crowd(t *testing.T, all *turns.Turns, account string, most int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(caller(t.Context(), account), time.Minute)
	defer cancel()
	for range most {
		leave, err := all.Take(ctx)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(leave)
	}
}

// A search keeps all processors busy, and a list a thread: of one account there are a
// few at a time.
func TestOneAccountDoesNotKeepOthersWaiting(t *testing.T) {
	f := newFolder(t)
	f.holds(map[string]string{"file": "needle"})
	crowd(t, find.Searches, "busy", 4)
	crowd(t, find.Lists, "busy", 16)
	ask := func(account string, within time.Duration) (search, list error) {
		ctx, cancel := context.WithTimeout(caller(t.Context(), account), within)
		defer cancel()
		_, search = f.finder.Search(ctx, core.SearchQuery{Pattern: "needle", Limit: 1, MaxBytes: 1000})
		_, list = f.finder.List(ctx, core.ListQuery{Limit: 1})
		return search, list
	}
	search, list := ask("other", time.Minute)
	if search != nil || list != nil {
		t.Errorf("another account: %v, %v", search, list)
	}
	search, list = ask("busy", time.Millisecond)
	for _, err := range []error{search, list} {
		var e *core.Error
		if !errors.As(err, &e) || e.Code != core.CodeRateLimited {
			t.Errorf("the busy account: %v", err)
		}
	}
}
