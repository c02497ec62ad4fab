package settings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode"
)

const (
	// maxAnswerBytes bounds an answer: a thousand profiles.
	maxAnswerBytes = 64 << 10
	// maxHeaderBytes bounds its header.
	maxHeaderBytes = 16 << 10
	// maxTagBytes is the longest ETag that is kept: beyond it, none is.
	maxTagBytes = 256
	// maxTokenBytes bounds the file with the token.
	maxTokenBytes = 8 << 10
)

// answer is what settings-api said of an account.
type answer struct {
	wishes
	tag  string // its ETag, "" where it has none that can be kept
	same bool   // it is what was said before; nothing else of it is set
}

// unfit is the error of an answer that says nothing that could be used, or of a
// refusal to say anything of this account: settings-api itself is there.
type unfit struct{ words string }

func (e *unfit) Error() string { return e.words }

// newHTTPClient makes the client for the one address. It follows no redirect and
// knows no proxy: both could send the token elsewhere.
func newHTTPClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			MaxResponseHeaderBytes: maxHeaderBytes,
			DisableCompression:     true,
			IdleConnTimeout:        30 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// address gives where the settings of an account are. It fails for the two names
// that stand for folders in every path, however they are written.
func address(base, account string) (string, error) {
	if account == "." || account == ".." {
		return "", errors.New("this name cannot be a part of an address")
	}
	return strings.TrimRight(base, "/") + "/v1/accounts/" + url.PathEscape(account) + "/settings", nil
}

// basis is what is known of an account when it is asked about.
type basis struct {
	tag  string // its ETag
	some bool   // something is asked for
}

// fetch asks for the settings of an account.
func (c *Client) fetch(ctx context.Context, address string, known basis) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Accept", "application/json")
	if known.tag != "" {
		req.Header.Set("If-None-Match", known.tag)
	}
	if c.TokenFile != "" {
		token, err := readToken(c.TokenFile)
		if err != nil {
			return answer{}, err
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	return readResponse(resp, known)
}

// readResponse reads what was answered to who knows something already. That nothing
// is asked for is believed at once where nothing was known; wishes that are known are
// forgotten only where it is said in JSON, since proxies answer 404 too, while what
// is behind them is away.
func readResponse(resp *http.Response, known basis) (answer, error) {
	switch status := resp.StatusCode; {
	case status == http.StatusNotModified && known.tag != "":
		return answer{same: true}, nil
	case status == http.StatusNotFound && known.some && !isJSON(resp.Header):
		return answer{}, &unfit{"it answered with status 404, and not in JSON, which may be a proxy's answer"}
	case status == http.StatusNotFound:
		return answer{}, nil
	case status >= 500, status == http.StatusUnauthorized, status == http.StatusForbidden,
		status == http.StatusRequestTimeout, status == http.StatusTooManyRequests:
		return answer{}, &refusal{status}
	case status != http.StatusOK:
		return answer{}, &unfit{fmt.Sprintf("it answered with status %d", status)}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes+1))
	if err != nil {
		return answer{}, fmt.Errorf("its answer broke off: %w", err)
	}
	if len(body) > maxAnswerBytes {
		return answer{}, &unfit{fmt.Sprintf("the answer is longer than %d bytes", maxAnswerBytes)}
	}
	w, err := readAnswer(body)
	if err != nil {
		return answer{}, &unfit{"the answer cannot be used: " + err.Error()}
	}
	return answer{wishes: w, tag: usableTag(resp.Header.Get("ETag"))}, nil
}

func isJSON(header http.Header) bool {
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}

func usableTag(tag string) string {
	if len(tag) > maxTagBytes {
		return ""
	}
	return tag
}

// readToken reads the token, which may have been replaced. Errors do not repeat it.
func readToken(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("cannot read the token for settings-api: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxTokenBytes+1))
	if err != nil {
		return "", fmt.Errorf("cannot read the token for settings-api: %w", err)
	}
	token := strings.TrimSpace(string(text))
	odd := func(r rune) bool { return r > unicode.MaxASCII || r <= ' ' || r == 0x7f }
	if token == "" || len(text) > maxTokenBytes || strings.IndexFunc(token, odd) >= 0 {
		return "", fmt.Errorf("cannot use the token for settings-api: %s must hold one token and nothing else", path)
	}
	return token, nil
}
