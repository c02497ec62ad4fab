// Package tools says what the operations are called and how they are
// published: one table, from which the REST routes, the MCP tools, the OpenAPI
// document and the reference pages are made by loops. It reads what callers
// send, strictly, into the typed inputs of core.
//
// It imports no transport, and it protects nothing but the shape of an input
// and the scope that an operation needs: who the caller is was decided before,
// and whether a thing is the caller's is decided by core.
package tools
