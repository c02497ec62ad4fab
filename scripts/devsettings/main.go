// Command devsettings stands in for settings-api on a machine of a developer: it
// holds the settings of accounts as long as it runs. It is not for production.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"envapi/internal/devsettings"
)

const text = `A stand-in for settings-api, for this machine and not for production.

Start the service with
  ENVAPI_SETTINGS_URL=%[1]s

Have shells of the account dev closed after a minute, and environments of its
profile work archived after an hour (within the bounds of the service, and when it
asks again, which is every five minutes):
  curl -X PUT %[1]s/v1/accounts/dev/settings%[2]s \
    -d '{"shell_idle_ms": 60000, "profiles": {"work": {"environment_idle_ms": 3600000}}}'
`

func main() {
	addr := flag.String("addr", "127.0.0.1:8010", "the loopback address to listen on")
	tokenFile := flag.String("token-file", "", "the file with the token that must come, as ENVAPI_SETTINGS_TOKEN_FILE of the service")
	flag.Parse()
	if err := run(*addr, *tokenFile); err != nil {
		fmt.Fprintln(os.Stderr, "devsettings:", err)
		os.Exit(1)
	}
}

func run(addr, tokenFile string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	token, header := "", ""
	if tokenFile != "" {
		raw, err := os.ReadFile(tokenFile)
		if err != nil {
			return err
		}
		token = strings.TrimSpace(string(raw))
		header = " -H \"Authorization: Bearer $(cat '" + tokenFile + "')\""
	}
	l, err := devsettings.Listen(ctx, addr)
	if err != nil {
		return err
	}
	fmt.Printf(text, "http://"+l.Addr().String(), header)
	return devsettings.New(token).Serve(ctx, l)
}
