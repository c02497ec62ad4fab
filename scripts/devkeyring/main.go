// Command devkeyring stands in for keyring on a machine of a developer: it
// makes tokens and serves the key with which envapi-http verifies them. Its key
// is new at each start. It is not for production.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"envapi/internal/devkeyring"
)

const text = `A stand-in for keyring, for this machine and not for production.

Start the service with
  ENVAPI_KEYRING_URL=%[1]s

A token for the account dev, good until %[3]s:
  %[2]s

Another, for another account or with less:
  curl -s %[1]s/token -H 'Authorization: Bearer %[2]s' \
    -d '{"sub":"bob","profile":"work","scope":"exec environments:read","lifetime_ms":3600000}'
`

func main() {
	addr := flag.String("addr", "127.0.0.1:8009", "the loopback address to listen on")
	audience := flag.String("audience", "envapi", "the audience of the tokens, as ENVAPI_AUDIENCE of the service")
	flag.Parse()
	if err := run(*addr, *audience); err != nil {
		fmt.Fprintln(os.Stderr, "devkeyring:", err)
		os.Exit(1)
	}
}

func run(addr, audience string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := devkeyring.Listen(ctx, addr)
	if err != nil {
		return err
	}
	key, err := devkeyring.NewKey()
	if err != nil {
		return err
	}
	url := "http://" + l.Addr().String()
	k, err := devkeyring.New(url, audience, key)
	if err != nil {
		return err
	}
	t := k.Master()
	fmt.Printf(text, url, t.Raw, t.Expires.Format(time.DateTime))
	return k.Serve(ctx, l)
}
