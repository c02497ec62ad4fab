// Package e2e tests the real programs from the outside: envapi-http over its
// port, envapi-mcp over its pipes, driven by clients that others wrote. Each
// test starts its own service on a free port of loopback, with a data folder
// of its own. The ids in the names of tests are those of the list of cases
// that broke other tools.
//
// It knows the contract, not the code: it shares no type with the services.
// What can be tested without processes is tested beside the code instead.
package e2e
