package require_test

import (
	"runtime"
	"testing"

	"envapi/internal/require"
)

// recorder is a test that notes how it was ended.
type recorder struct {
	testing.TB
	ended string
}

func (r *recorder) Helper()               {}
func (r *recorder) Skipf(string, ...any)  { r.ended = "skipped"; runtime.Goexit() }
func (r *recorder) Fatalf(string, ...any) { r.ended = "failed"; runtime.Goexit() }

func TestFeatureSkipsUnlessItIsRequired(t *testing.T) {
	for _, c := range []struct{ name, variable, want string }{
		{"nothing is required", "", "skipped"},
		{"another is required", "landlock", "skipped"},
		{"a longer name is required", "userns2", "skipped"},
		{"it is required", "userns", "failed"},
		{"it is required among others", "landlock,userns", "failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(require.Variable, c.variable)
			r := &recorder{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				require.Feature(r, "userns", "for this test")
				r.ended = "went on"
			}()
			<-done
			if r.ended != c.want {
				t.Errorf("the test %s, want %s", r.ended, c.want)
			}
		})
	}
}
