// Command envapi-mcp serves envapi to an assistant of this user over standard
// input and output.
package main

import (
	"os"

	"envapi/internal/app"
)

func main() { os.Exit(app.RunMCP(app.Signals(), app.ThisProcess())) }
