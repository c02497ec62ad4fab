package docs

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"envapi/core"
	"envapi/internal/openapi"
	"envapi/internal/problem"
	"envapi/tools"
)

const apiIntroduction = `# The REST API

Every operation, with its fields, answers and failures. The same as an OpenAPI 3.1 document is at ` + "`/openapi.json`" + `; the same operations as tools for assistants are in [tools.md](tools.md).

## Requests

- **Token.** Every route under ` + "`/v1`" + ` needs one ` + "`Authorization: Bearer TOKEN`" + ` header with a token from keyring. Without a good one the answer is 401, whether the route exists or not. A token in the query is refused.
- **Fields.** What stands in braces in a path is a field. With GET and DELETE the other fields stand in the query, each once; with POST and PATCH in the body; with PUT, whose body is bytes, in the query. A body of fields is one JSON object in UTF-8 with ` + "`Content-Type: application/json`" + `. Where every field may be left out, so may the body.
- **Strictness.** An unknown field, a field given twice, a wrong type and a value out of range are refused by name. An integer is written with digits only. An optional field that is null is left out.
- **Idempotency.** The field ` + "`idempotency_key`" + ` may also stand in the header ` + "`Idempotency-Key`" + `. The same key and input again is answered with what the first call made, as it is now, however many ask at one moment and also over a restart; with another input it is refused. What failed leaves its key free. Keys belong to an operation and to the account and profile, and are forgotten when ` + "`ENVAPI_IDEMPOTENCY_RETENTION_MS`" + ` (24 hours by default) has passed since the first use, or with the command or shell that was made.
- **Conditions.** The fields ` + "`if_match`" + ` and ` + "`if_none_match`" + `, which are strings, may also stand in the headers ` + "`If-Match`" + ` and ` + "`If-None-Match`" + `, where ETags are in quotes; in JSON they have none. Weak ones match nothing.
- **Size.** A body of fields has at most %d bytes; that of a PUT any number, as long as it does not stand still for two minutes.
- **Web pages.** A request whose ` + "`Host`" + ` or ` + "`Origin`" + ` names a site that is not the service's own is refused. An ` + "`Origin`" + ` on a loopback address is accepted with any port: only a program of the caller's own machine, such as an MCP inspector, can serve such a page, and without a token it can do nothing. No answer allows a browser to show it to another origin (there is no CORS).

## Answers

JSON with names in snake_case. Times are RFC 3339 in UTC with milliseconds, durations are integers that end in ` + "`_ms`" + `, sizes integers that end in ` + "`_bytes`" + `. Ids are opaque. Lists have a stable order and are read page by page: as long as there is a ` + "`next_cursor`" + `, give it as ` + "`cursor`" + `. Every answer has the id of its request in ` + "`X-Request-Id`" + `. HEAD works where GET does.

A client that goes away ends its own wait. The command that it waited for goes on.

`

const fixedRoutes = `## Routes that are no operation

| route | token | answer |
|---|---|---|
| GET /healthz | no | 200 while the process lives, for any ` + "`Host`" + ` |
| GET /ready | no | 200 when the service can do its work, else 503; ` + "`status`" + ` is ` + "`ready`, `starting`, `draining` or `failing`" + `; ` + "`sandbox`" + ` says which tiers this host can have, as probed, and what the active one holds; ` + "`keyring`" + ` whether tokens can be verified and since when; ` + "`store`" + ` whether it answers |
| GET /openapi.json | no | the OpenAPI 3.1 document |
| POST /mcp | yes | the Model Context Protocol; see [tools.md](tools.md) |

`

func api(ops []tools.Operation) []byte {
	p := newPage(ops)
	p.WriteString(notice)
	fmt.Fprintf(p, apiIntroduction, tools.MaxInputBytes)
	p.errors()
	p.WriteString(fixedRoutes)
	noun := ""
	for _, op := range ops {
		if op.Noun != noun {
			noun = op.Noun
			p.line("## Operations: %s\n\n%s\n", noun, tools.Nouns[noun])
		}
		p.operation(op)
	}
	p.outputs(ops)
	return p.Bytes()
}

// errors writes the table of codes.
func (p *page) errors() {
	p.line("## Errors\n")
	p.line("A failure means that it was not done. It is answered as `%s` (RFC 9457) with `type`, `title`, `status`, `detail`, `instance` (the request's id), `code`, and the members of the code. What a command did (a non-zero exit, a signal, a timeout) is a result, not a failure. With `retry_after_ms` comes the header `Retry-After`, with 401 and `insufficient_scope` the header `WWW-Authenticate`, with 405 the header `Allow`.\n", problem.MediaType)
	p.line("| code | status | members | meaning |")
	p.line("|---|---|---|---|")
	for _, info := range core.Codes {
		p.line("| `%s` | %d | %s | %s |", info.Code, problem.Status(info.Code), code(info.Members), info.Meaning)
	}
	p.line("")
}

// operation writes what there is to say about one route.
func (p *page) operation(op tools.Operation) {
	p.line("### %s\n", op.Name)
	p.line("`%s %s` · scope `%s`\n", op.Method, op.Path, op.Scope)
	p.line("%s\n", op.Description)
	if rows := p.fields(op.Input, "", inInputs, placeIn(op)); len(rows) > 0 {
		p.table(rows)
	}
	p.line("Answers %s. Fails with %s.\n", answers(op), code(openapi.Codes(op)))
	if headers := openapi.Headers(op); len(headers) > 0 {
		p.line("| header | meaning |\n|---|---|")
		for _, name := range slices.Sorted(maps.Keys(headers)) {
			p.line("| `%s` | %s |", name, headers[name])
		}
		p.line("")
	}
	if op.NoTool != "" {
		p.line("There is no tool of this name: %s.\n", op.NoTool)
	}
	p.forms(op)
}

// forms writes in which other forms an operation answers.
func (p *page) forms(op tools.Operation) {
	for _, form := range op.Forms {
		p.line("**`Accept: %s`.** %s\n", form.MediaType, form.Description)
		p.line("| header | meaning |\n|---|---|")
		for _, name := range slices.Sorted(maps.Keys(form.Headers)) {
			p.line("| `%s` | %s |", name, form.Headers[name])
		}
		p.line("")
	}
}

// placeIn says where in a request a field of the operation stands.
func placeIn(op tools.Operation) func(string) string {
	return func(name string) string {
		switch {
		case strings.Contains(op.Path, "{"+name+"}"):
			return "path"
		case op.Method == http.MethodGet || op.Method == http.MethodDelete || op.RawBody:
			return "query"
		case name == "idempotency_key":
			return "body or header"
		default:
			return "body"
		}
	}
}

// answers says with which statuses and type an operation succeeds.
func answers(op tools.Operation) string {
	switch op.Success.Kind {
	case tools.NoContent:
		return "204"
	case tools.Created:
		return "201 with `Location` and " + typeLink(op.OutputName)
	case tools.Attached:
		return "101: it goes on as a WebSocket"
	case tools.DoneOrMade:
		return "200, or 201 where there was none, with `ETag` and " + typeLink(op.OutputName)
	case tools.Content:
		return "200 with the bytes and `ETag`, 206 with a range, or 304"
	case tools.Archive:
		return "200 with the archive, and the trailer `Envapi-Skipped`"
	case tools.Feed:
		return "200 with events"
	case tools.DoneOrGoesOn:
		return "200, or 202 while it goes on, with " + typeLink(op.OutputName)
	default:
		return "200 with " + typeLink(op.OutputName)
	}
}

// outputs writes the types of the answers, each once.
func (p *page) outputs(ops []tools.Operation) {
	p.line("## Types\n\nA field with the rule \"always\" is there in every answer.\n")
	written := map[string]bool{}
	for _, op := range ops {
		if op.Output == nil || written[op.OutputName] {
			continue
		}
		written[op.OutputName] = true
		p.line("### %s\n", op.OutputName)
		p.table(p.fields(op.Output, "", inOutputs, nowhere))
	}
}

// code writes names as code, separated by commas.
func code[T ~string](names []T) string {
	var quoted []string
	for _, name := range names {
		quoted = append(quoted, "`"+string(name)+"`")
	}
	return strings.Join(quoted, ", ")
}
