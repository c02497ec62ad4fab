package app

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"envapi/core"
	"envapi/internal/config"
	"envapi/internal/devkeyring"
)

// devIssuer is the iss of the stand-in's tokens. It names no address, so that
// tokens stay good over a restart.
const devIssuer = "envapi-dev"

// dev is the stand-in for keyring in this process.
type dev struct {
	url       string
	token     devkeyring.Token
	tokenFile string
	stop      context.CancelFunc
	served    chan error
}

// startDev starts the stand-in, with its key and a token in the data folder.
func startDev(ctx context.Context, c config.Config) (*dev, error) {
	key, err := devkeyring.LoadKey(filepath.Join(c.DataDir, "dev-key"))
	if err != nil {
		return nil, err
	}
	k, err := devkeyring.New(devIssuer, c.Audience, key)
	if err != nil {
		return nil, err
	}
	d := &dev{token: k.Master(), tokenFile: filepath.Join(c.DataDir, "dev-token"), served: make(chan error, 1)}
	if err := devkeyring.WriteSecret(d.tokenFile, []byte(d.token.Raw+"\n")); err != nil {
		return nil, err
	}
	l, err := devkeyring.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d.url = "http://" + l.Addr().String()
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	d.stop = stop
	go func() { d.served <- k.Serve(serving, l) }()
	return d, nil
}

func (d *dev) close() error {
	d.stop()
	return <-d.served
}

//go:embed dev.txt
var devText string

var devTemplate = template.Must(template.New("dev").Funcs(template.FuncMap{"shell": shellQuoted, "json": jsonQuoted}).Parse(devText))

// print says to the developer what this is and how to use it.
func (d *dev) print(w io.Writer, url string) {
	err := devTemplate.Execute(w, map[string]string{
		"URL": url, "Token": d.token.Raw, "TokenFile": d.tokenFile, "KeyringURL": d.url,
		"Until": d.token.Expires.Format(time.DateTime), "MCPProgram": mcpProgram(), "Scopes": allScopes(),
	})
	if err != nil {
		_, _ = fmt.Fprintln(w, "cannot print more:", err)
	}
}

// allScopes gives them as a token does, so that whoever copies the line can try everything.
func allScopes() string {
	var names []string
	for _, scope := range core.AllScopes {
		names = append(names, string(scope))
	}
	return strings.Join(names, " ")
}

// mcpProgram gives the path of envapi-mcp, which is built beside envapi-http.
func mcpProgram() string {
	if self, err := os.Executable(); err == nil {
		path := filepath.Join(filepath.Dir(self), string(config.ProgramMCP))
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return string(config.ProgramMCP)
}

func shellQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func jsonQuoted(s string) string {
	text, _ := json.Marshal(s) // a string can always be written
	return string(text)
}
