package openapi

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"envapi/core"
	"envapi/internal/problem"
	"envapi/tools"
)

func method(op tools.Operation) string { return strings.ToLower(op.Method) }

// operation describes one row of the table.
func operation(op tools.Operation) object {
	description := object{
		"operationId": op.Name,
		"summary":     op.Title,
		"description": op.Description,
		"tags":        []string{op.Noun},
		"security":    []object{{"bearer": []core.Scope{op.Scope}}},
		"responses":   responses(op),
	}
	if parameters := parameters(op); len(parameters) > 0 {
		description["parameters"] = parameters
	}
	if op.RawBody {
		description["requestBody"] = object{
			"required": true,
			"content":  object{"*/*": object{"schema": object{"type": "string", "description": "The bytes."}}},
		}
	}
	if body := Body(op); body != nil {
		description["requestBody"] = object{
			"required": len(body.Required) > 0,
			"content":  object{"application/json": object{"schema": body}},
		}
	}
	return description
}

// Body gives the schema of an operation's body, or nil where it has none:
// Input without what stands in the path.
func Body(op tools.Operation) *jsonschema.Schema {
	if op.Method == http.MethodGet || op.Method == http.MethodDelete || op.RawBody {
		return nil
	}
	body := op.Input.CloneSchemas()
	inPath := func(name string) bool { return strings.Contains(op.Path, "{"+name+"}") }
	body.PropertyOrder = slices.DeleteFunc(slices.Clone(body.PropertyOrder), inPath)
	body.Required = slices.DeleteFunc(slices.Clone(body.Required), inPath)
	for name := range body.Properties {
		if inPath(name) {
			delete(body.Properties, name)
		}
	}
	if len(body.Properties) == 0 {
		return nil
	}
	return body
}

// parameters describes what stands in the path, the query and the headers.
func parameters(op tools.Operation) []object {
	var list []object
	body := Body(op)
	for _, name := range op.Input.PropertyOrder {
		schema := op.Input.Properties[name]
		switch {
		case strings.Contains(op.Path, "{"+name+"}"):
			list = append(list, parameter(name, "path", true, schema))
		case name == "idempotency_key":
			list = append(list, parameter("Idempotency-Key", "header", false, schema))
		case body == nil:
			list = append(list, parameter(name, "query", slices.Contains(op.Input.Required, name), schema))
		}
	}
	return append(list, headers(op)...)
}

// headers describes the headers that an operation and its forms understand.
func headers(op tools.Operation) []object {
	var list []object
	for _, name := range slices.Sorted(maps.Keys(Headers(op))) {
		list = append(list, object{
			"name": name, "in": "header", "required": false, "schema": object{"type": "string"},
			"description": Headers(op)[name],
		})
	}
	for _, form := range op.Forms {
		for _, name := range slices.Sorted(maps.Keys(form.Headers)) {
			list = append(list, object{
				"name": name, "in": "header", "required": false, "schema": object{"type": "string"},
				"description": "With Accept: " + form.MediaType + ". " + form.Headers[name],
			})
		}
	}
	return list
}

// Headers gives the headers of a request that an operation understands beside the
// fields that may stand in some, with what each does.
func Headers(op tools.Operation) map[string]string {
	headers := map[string]string{}
	for field, name := range map[string]string{"if_match": "If-Match", "if_none_match": "If-None-Match"} {
		if p := op.Input.Properties[field]; p != nil && p.Type == "string" {
			headers[name] = "The field " + field + ", with each ETag in quotes. Not both."
		}
	}
	if op.Success.Kind == tools.Content {
		headers["If-Match"] = "ETags in quotes; where the file has none of them the answer is 412."
		headers["Range"] = "One range of bytes: from-to, from- or -length. Several are answered as none."
		headers["If-Range"] = "An ETag in quotes; the range is ignored where the file has another by now."
	}
	return headers
}

func parameter(name, in string, required bool, schema *jsonschema.Schema) object {
	bare := *schema
	bare.Description = ""
	return object{"name": name, "in": in, "required": required, "description": schema.Description, "schema": &bare}
}

// responses describes every answer: success, and each status of an error with
// the codes that have it.
func responses(op tools.Operation) object {
	answers := object{}
	for _, status := range Statuses(op) {
		answers[strconv.Itoa(status)] = success(op, status)
	}
	codes := map[int][]string{}
	for _, code := range Codes(op) {
		status := problem.Status(code)
		codes[status] = append(codes[status], string(code))
	}
	for status, names := range codes {
		answers[strconv.Itoa(status)] = refused(strings.Join(names, ", "))
	}
	if op.Success.Kind == tools.Content {
		answers["206"] = part(tools.Form{MediaType: tools.RawBytes, Description: "The bytes."})
		answers["304"] = object{"description": "The file is what it was."}
	}
	for _, form := range op.Forms {
		if form.MediaType == tools.RawBytes {
			answers["206"] = part(form)
			answers["304"] = object{"description": "The stream is what it was."}
		}
	}
	return answers
}

// part describes an answer that is a range.
func part(form tools.Form) object {
	return object{
		"description": "The range, or its beginning: up to the end, or to what was dropped.",
		"headers":     object{"Content-Range": object{"description": "Which bytes of how many.", "schema": object{"type": "string"}}},
		"content":     object{form.MediaType: object{"schema": bytesOf(form)}},
	}
}

func bytesOf(form tools.Form) object {
	return object{"type": "string", "description": form.Description}
}

// Codes gives the codes that an operation may fail with over HTTP.
func Codes(op tools.Operation) []core.Code {
	codes := slices.Concat(tools.CommonErrors, op.Errors)
	if Body(op) != nil {
		codes = append(codes, core.CodeTooLarge, core.CodeUnsupportedEncoding)
	}
	for _, form := range op.Forms {
		codes = append(codes, form.Errors...)
	}
	var ordered []core.Code
	for _, info := range core.Codes {
		if slices.Contains(codes, info.Code) {
			ordered = append(ordered, info.Code)
		}
	}
	return ordered
}

// Statuses gives the statuses of success of an operation.
func Statuses(op tools.Operation) []int {
	switch op.Success.Kind {
	case tools.Created:
		return []int{http.StatusCreated}
	case tools.NoContent:
		return []int{http.StatusNoContent}
	case tools.Attached:
		return []int{http.StatusSwitchingProtocols}
	case tools.DoneOrMade:
		return []int{http.StatusOK, http.StatusCreated}
	case tools.DoneOrGoesOn:
		return []int{http.StatusOK, http.StatusAccepted}
	default:
		return []int{http.StatusOK}
	}
}

func success(op tools.Operation, status int) object {
	text := map[int]string{
		http.StatusOK: "Done.", http.StatusCreated: "Made.",
		http.StatusSwitchingProtocols: "It goes on as a WebSocket; see the description.",
		http.StatusAccepted:           "It goes on.", http.StatusNoContent: "Done; there is nothing to say.",
	}[status]
	answer := object{"description": text}
	if op.Output != nil {
		content := object{"application/json": object{"schema": reference(op.OutputName)}}
		for _, form := range op.Forms {
			content[form.MediaType] = object{"schema": bytesOf(form)}
		}
		answer["content"] = content
	}
	if media := Media(op.Success.Kind); media != nil {
		content := object{}
		for _, name := range media {
			content[name] = object{"schema": object{"type": "string", "description": "The bytes, or the events."}}
		}
		answer["content"] = content
	}
	if op.RawBody && op.Success.Kind == tools.DoneOrMade || op.Success.Kind == tools.Content {
		answer["headers"] = object{"ETag": object{"description": "The tag of the content, in quotes.", "schema": object{"type": "string"}}}
		return answer
	}
	if status == http.StatusCreated {
		answer["headers"] = object{"Location": object{"description": "Where the new thing is.", "schema": object{"type": "string"}}}
	}
	return answer
}

// Media gives the media types of answers that are no JSON.
func Media(kind tools.Kind) []string {
	switch kind {
	case tools.Content:
		return []string{tools.RawBytes}
	case tools.Archive:
		return []string{tools.Gzip, tools.Tar, tools.Zstd}
	case tools.Feed:
		return []string{tools.EventStream}
	}
	return nil
}

func reference(name string) object { return object{"$ref": "#/components/schemas/" + name} }
