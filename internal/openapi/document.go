// Package openapi describes the operations table as an OpenAPI 3.1 document.
// It describes what is there and protects nothing.
package openapi

import (
	"encoding/json"
	"fmt"

	"envapi/core"
	"envapi/tools"
)

// object is a JSON object; encoding/json writes its members in order of name.
type object = map[string]any

// Document gives the OpenAPI 3.1 document, as indented JSON, of ops and of the
// fixed routes. version is the program's.
func Document(ops []tools.Operation, version string) ([]byte, error) {
	schemas := object{"Problem": problemSchema()}
	paths := fixedPaths()
	for _, op := range ops {
		if op.Output != nil {
			schemas[op.OutputName] = op.Output
		}
		item, _ := paths[op.Path].(object)
		if item == nil {
			item = object{}
			paths[op.Path] = item
		}
		item[method(op)] = operation(op)
	}
	document := object{
		"openapi":  "3.1.0",
		"info":     info(version),
		"servers":  []object{{"url": "/"}},
		"tags":     tags(ops),
		"security": []object{{"bearer": []string{}}},
		"paths":    paths,
		"components": object{
			"schemas":         schemas,
			"securitySchemes": object{"bearer": bearer()},
		},
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("cannot write the OpenAPI document: %w", err)
	}
	return text, nil
}

func info(version string) object {
	return object{
		"title":       "envapi",
		"version":     version,
		"summary":     "Isolated environments in which programs run contained.",
		"description": "Every failure is a problem document of RFC 9457 with a `code`. Times are RFC 3339 in UTC, durations are milliseconds, sizes are bytes.",
		"license":     object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
	}
}

func bearer() object {
	return object{
		"type": "http", "scheme": "bearer", "bearerFormat": "JWT",
		"description": "A token from keyring. The scope that an operation needs stands in its security requirement.",
	}
}

// tags lists the nouns in the order of the table.
func tags(ops []tools.Operation) []object {
	var list []object
	seen := map[string]bool{}
	for _, op := range ops {
		if !seen[op.Noun] {
			seen[op.Noun] = true
			list = append(list, object{"name": op.Noun, "description": tools.Nouns[op.Noun]})
		}
	}
	return append(list, object{"name": "operating", "description": "For those who run the service; without a token."})
}

func problemSchema() object {
	codes := []core.Code{}
	properties := object{}
	for _, info := range core.Codes {
		codes = append(codes, info.Code)
		for _, member := range info.Members {
			properties[member] = object{"description": "With some codes; see the reference."}
		}
	}
	for name, description := range map[string]string{
		"type": "The URI of the kind of problem.", "title": "The kind of problem in words.",
		"detail":   "What failed, why, and what to do.",
		"instance": "The id of the request; it finds the request in the service's log.",
	} {
		properties[name] = object{"type": "string", "description": description}
	}
	properties["status"] = object{"type": "integer", "description": "The HTTP status."}
	properties["code"] = object{"type": "string", "enum": codes, "description": "The kind of problem, to switch on."}
	return object{
		"type": "object", "properties": properties,
		"required": []string{"type", "title", "status", "detail", "instance", "code"},
	}
}
