package e2e

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"testing"

	"go.uber.org/goleak"

	"envapi/internal/testbin"
)

func TestMain(m *testing.M) {
	// More at a time than there are cores, since most of them wait. The command
	// line is read later and wins.
	_ = flag.Set("test.parallel", "4")
	code := testbin.Run(m)
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
