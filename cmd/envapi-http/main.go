// Command envapi-http serves envapi over HTTP: REST below /v1, MCP at /mcp.
package main

import (
	"os"

	"envapi/internal/app"
)

func main() { os.Exit(app.RunHTTP(app.Signals(), app.ThisProcess())) }
