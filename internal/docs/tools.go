package docs

import "envapi/tools"

const toolsIntroduction = `# The tools for assistants

The operations of [the REST API](api.md) as tools of the Model Context Protocol, by the same names and with the same fields.

## Two doors

- **Over HTTP**: ` + "`envapi-http`" + ` serves streamable HTTP at ` + "`/mcp`" + `, without sessions, each answer one JSON message. Every request needs the same ` + "`Authorization: Bearer TOKEN`" + ` header as the REST API.
- **Over stdio**: ` + "`envapi-mcp`" + ` is started by the assistant's client and serves its user, without a token. Nothing but protocol messages is written to its standard output; its log goes to standard error. It ends with its input. One at a time can use a data folder: give a second assistant another by ` + "`ENVAPI_DATA_DIR`" + `.

## Calls and answers

- An answer is structured content that has the tool's output schema, and the same JSON as text.
- A failure is an answer with ` + "`isError`" + `: as text ` + "`code: detail`" + ` and the facts of the code, and the same as structured content with ` + "`code`, `detail`, `request_id`" + ` and the members of the code. The codes are those of [the REST API](api.md#errors). The output schema allows both.
- What a command did (a non-zero exit, a signal, a timeout) is a result, not a failure.
- A client that cancels a call or goes away ends its wait, never the command. Over HTTP ` + "`notifications/cancelled`" + ` has no effect: close the request instead.
- Over stdio up to 1024 calls are served beside each other, so that a wait holds up no other call.

## The tools

| tool | what | reads only | may destroy | repeatable | reaches outside |
|---|---|---|---|---|---|
`

func toolsPage(ops []tools.Operation) []byte {
	ops = tools.Offered(ops)
	p := newPage(ops)
	p.WriteString(notice)
	p.WriteString(toolsIntroduction)
	for _, op := range ops {
		h := op.Hints
		p.line("| [`%s`](#%s) | %s | %s | %s | %s | %s |", op.Name, op.Name, op.Title,
			yes(h.ReadOnly), yes(h.Destructive), yes(h.Idempotent), yes(h.OpenWorld))
	}
	p.line("")
	for _, op := range ops {
		p.tool(op)
	}
	return p.Bytes()
}

// tool writes what an assistant is told about one tool.
func (p *page) tool(op tools.Operation) {
	p.line("### %s\n", op.Name)
	p.line("%s\n", op.Description)
	if rows := p.fields(op.ToolInput(), "", inInputs, nowhere); len(rows) > 0 {
		p.table(rows)
	}
	answer := "nothing"
	if op.Output != nil {
		answer = typeLink(op.OutputName)
	}
	p.line("Answers %s. Needs the scope `%s`.\n", answer, op.Scope)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
