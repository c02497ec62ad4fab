package openapi

import "envapi/internal/problem"

// fixedPaths describes the routes that are no operation. /mcp is none of REST:
// it speaks the Model Context Protocol.
func fixedPaths() object {
	return object{
		"/healthz": fixed("healthz", "Is the process alive?", object{
			"200": plain("It is.", object{"type": "object", "required": []string{"status"}, "properties": object{"status": object{"const": "ok"}}}),
			"400": refused("invalid_argument"),
		}),
		"/ready": fixed("ready", "Can the service do its work?", object{
			"200": plain("It can.", readinessSchema()),
			"503": plain("It cannot yet, or no longer.", readinessSchema()),
			"400": refused("invalid_argument"), "403": refused("origin_refused"),
		}),
		"/openapi.json": fixed("openapi", "This document.", object{
			"200": plain("The document.", object{"type": "object"}),
			"400": refused("invalid_argument"), "403": refused("origin_refused"),
		}),
	}
}

func fixed(id, summary string, responses object) object {
	return object{"get": object{
		"operationId": id, "summary": summary, "tags": []string{"operating"},
		"security": []object{}, "responses": responses,
	}}
}

func plain(description string, schema object) object {
	return object{"description": description, "content": object{"application/json": object{"schema": schema}}}
}

// refused describes an answer that is a problem document with one of codes.
func refused(codes string) object {
	return object{
		"description": codes,
		"content":     object{problem.MediaType: object{"schema": reference("Problem")}},
	}
}

func readinessSchema() object {
	return object{
		"type": "object", "required": []string{"status", "sandbox", "keyring", "store"},
		"properties": object{
			"status":  object{"type": "string", "enum": []string{"ready", "starting", "draining", "failing"}},
			"sandbox": object{"type": "object", "description": "What contains commands here, tier by tier and control by control, as in get_status."},
			"keyring": object{"type": "object", "description": "Whether tokens can be verified, and since when."},
			"store":   object{"type": "object", "description": "Whether the store answers."},
		},
	}
}
