// Package mcpserver is the door for assistants: the operations table as tools
// of the Model Context Protocol, over streamable HTTP and over stdio. It is the
// one package that knows mcp-go, which does the protocol; the schemas, the
// checks of inputs and the answers are those of the table.
//
// What a client sends is read here first, bounded, and handed on as a canonical
// message without the arguments of tools, which go straight to the operation.
// The package authenticates nobody: over HTTP the caller must be in the
// request's context, over stdio it is the one that was given.
package mcpserver
