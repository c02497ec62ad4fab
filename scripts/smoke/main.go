// Command smoke drives every operation of a running envapi-http, over REST and
// over MCP, and says what it saw, a line each. It reads the list of operations
// from the server itself: one that it does not know how to drive is reported
// and fails. It exits with 1 on any difference.
//
// It makes environments and removes them again; it touches no others. It does
// not look for weaknesses: that is what the tests are for.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"envapi/internal/config"
)

// allowed is how long the whole run may take; every call in it is bounded by
// what is left of that.
const allowed = 2 * time.Minute

func main() {
	url := flag.String("url", "http://127.0.0.1:8008", "the server's address")
	token := flag.String("token", "", "the token")
	tokenFile := flag.String("token-file", "", "a file that holds the token; default dev-token in the data folder, where envapi-http --dev has put it")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), allowed)
	defer cancel()
	if err := run(ctx, os.Stdout, *url, *token, *tokenFile); err != nil {
		fmt.Fprintln(os.Stderr, "smoke:", err)
		os.Exit(1)
	}
}

// run drives the server through both doors and joins what differed.
func run(ctx context.Context, out io.Writer, url, token, tokenFile string) error {
	token, err := readToken(token, tokenFile)
	if err != nil {
		return err
	}
	s := server{url: strings.TrimSuffix(url, "/"), token: token}
	if err := checkProbes(ctx, out, s); err != nil {
		return err
	}
	contract, err := fetchContract(ctx, s)
	if err != nil {
		return err
	}
	mcp, err := openMCP(ctx, s)
	if err != nil {
		return err
	}
	return errors.Join(
		drive(ctx, out, &restDoor{s, contract}, contract.names()),
		drive(ctx, out, mcp, mcp.tools),
	)
}

// drive plays the scenario through one door and then asks whether the door has
// operations that were not part of it.
func drive(ctx context.Context, out io.Writer, d door, offered []string) error {
	s := &session{ctx: ctx, out: out, door: d, driven: map[string]bool{}}
	if err := s.scenario(); err != nil {
		fmt.Fprintf(out, "FAIL %s %v\n", d.name(), err)
		return fmt.Errorf("over %s: %w", d.name(), err)
	}
	if missed := undriven(offered, s.driven); len(missed) > 0 {
		return fmt.Errorf("over %s: the server offers operations that smoke does not drive: %s",
			d.name(), strings.Join(missed, ", "))
	}
	fmt.Fprintf(out, "ok   %s: all %d operations\n", d.name(), len(offered))
	return nil
}

func undriven(offered []string, driven map[string]bool) []string {
	var missed []string
	for _, name := range offered {
		if !driven[name] {
			missed = append(missed, name)
		}
	}
	return missed
}

// readToken gives the token, or that of a file: without either, the one that
// envapi-http --dev has written into its data folder.
func readToken(token, file string) (string, error) {
	if token != "" {
		return token, nil
	}
	if file == "" {
		settings, err := config.Load(config.Source{
			Program: config.ProgramHTTP, Dev: true, Environ: os.Environ(), Dir: ".", Root: os.Getuid() == 0,
		})
		if err != nil {
			return "", fmt.Errorf("cannot find the data folder; give -token or -token-file: %w", err)
		}
		file = filepath.Join(settings.DataDir, "dev-token")
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("cannot read the token; give -token or -token-file: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}
