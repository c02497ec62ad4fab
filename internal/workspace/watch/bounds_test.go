package watch_test

import (
	"fmt"
	"os"
	"testing"

	"envapi/core"
)

func TestTheDirectoriesOfAWatchAreBounded(t *testing.T) {
	w := newWorld(t)
	w.do(func() error {
		for n := range 8191 {
			if err := os.Mkdir(w.path(fmt.Sprint(n)), 0o700); err != nil {
				return err
			}
		}
		return nil
	})
	one := w.watch("", true)
	w.mkdir("more")
	want(t, one, event(core.FileCreated, "more", directory), event(core.FileOverflow, "", directory))
	_, err := w.watches.Watch(t.Context(), w.root, "", true)
	wantCode(t, err, core.CodeQuotaExceeded)
	must(t, w.watch("", false).Close())
}

func TestTheWatchesOfAnEnvironmentAreBounded(t *testing.T) {
	w := newWorld(t)
	var all []core.FileWatch
	for range 16 {
		all = append(all, w.watch("", false))
	}
	_, err := w.watches.Watch(t.Context(), w.root, "", false)
	wantCode(t, err, core.CodeQuotaExceeded)
	must(t, all[0].Close())
	must(t, w.watch("", false).Close())
}
