package main

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const toleranceSeconds = 300
const maxSignatures = 20

// WebhookError states the reason for a refusal. Code is one of consumer/vectors.json.
type WebhookError struct{ Code, Detail string }

func (e *WebhookError) Error() string { return e.Code + ": " + e.Detail }

// Key is what signatures of one version are checked with: `v1` is HMAC-SHA256, `v1a` ed25519.
type Key struct {
	version string
	bytes   []byte
}

// Header is one header as it came. A list of them retains repeated ones.
type Header struct{ Name, Value string }

// Event is what this program needs of an event; docs/events.md has all of it.
type Event struct {
	ID        string    `json:"id"`
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      struct {
		Subject struct {
			ID string `json:"id"`
		} `json:"subject"`
		Sequence       *int64 `json:"sequence"`
		Epoch          int64  `json:"epoch"`
		Status         string `json:"status"`
		PreviousStatus string `json:"previousStatus"`
		Proof          struct {
			Payment string  `json:"payment"`
			TxHash  *string `json:"txHash"`
		} `json:"proof"`
		Transfer struct {
			Destination struct {
				TxHash *string `json:"txHash"`
			} `json:"destination"`
		} `json:"transfer"`
		Record map[string]any `json:"record"`
	} `json:"data"`
}

// readSecrets gives the keys of `whsec_…` and `whpk_…`, several while one is being replaced.
func readSecrets(texts []string) ([]Key, error) {
	var keys []Key
	for index, text := range texts {
		prefix, encoded, _ := strings.Cut(text, "_")
		bytes, ok := decoded(encoded)
		switch {
		case ok && prefix == "whsec" && len(bytes) >= 24 && len(bytes) <= 64:
			keys = append(keys, Key{"v1", bytes})
		case ok && prefix == "whpk" && len(bytes) == ed25519.PublicKeySize:
			keys = append(keys, Key{"v1a", bytes})
		default:
			return nil, fmt.Errorf("secret %d is none: expected whsec_ or whpk_ and base64", index+1)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("found no webhook secret, expected at least one")
	}
	return keys, nil
}

var unixSeconds = regexp.MustCompile(`^[0-9]{1,12}$`)

// verify gives the event in a webhook, or a WebhookError where it is not signed with one of the keys. body is the bytes as
// they came, now Unix seconds.
func verify(keys []Key, headers []Header, body []byte, now int64) (Event, error) {
	id, err := oneValue(headers, "webhook-id")
	if err != nil {
		return Event{}, err
	}
	timestamp, err := oneValue(headers, "webhook-timestamp")
	if err != nil {
		return Event{}, err
	}
	signatures := strings.Fields(strings.Join(values(headers, "webhook-signature"), " "))
	if len(signatures) == 0 {
		return Event{}, &WebhookError{"header_missing", "found no webhook-signature"}
	}
	if len(signatures) > maxSignatures {
		signatures = signatures[:maxSignatures]
	}
	if !unixSeconds.MatchString(timestamp) {
		return Event{}, &WebhookError{"timestamp_invalid", "expected webhook-timestamp to be Unix seconds"}
	}
	if err := requireSignature(keys, signatures, append([]byte(id+"."+timestamp+"."), body...)); err != nil {
		return Event{}, err
	}
	// Only after the signature: the time of a forged webhook has no meaning.
	signedAt, _ := strconv.ParseInt(timestamp, 10, 64)
	if age := now - signedAt; age > toleranceSeconds {
		return Event{}, &WebhookError{"timestamp_too_old", fmt.Sprintf("signed %d s ago", age)}
	} else if age < -toleranceSeconds {
		return Event{}, &WebhookError{"timestamp_too_new", fmt.Sprintf("signed %d s in the future", -age)}
	}
	return readEvent(body, id)
}

func requireSignature(keys []Key, signatures []string, signed []byte) error {
	sameKind := false
	// Several signatures and several secrets while one is being replaced: one pair that fits is enough.
	for _, signature := range signatures {
		version, text, _ := strings.Cut(signature, ",")
		for _, key := range keys {
			if key.version != version {
				continue
			}
			sameKind = true
			if given, ok := decoded(text); ok && key.fits(given, signed) {
				return nil
			}
		}
	}
	if !sameKind {
		return &WebhookError{"signature_kind", "found no signature of a version for which there is a secret"}
	}
	return &WebhookError{"signature_mismatch", "no signature fits: another secret, or a changed body"}
}

func (key Key) fits(given, signed []byte) bool {
	if key.version == "v1a" {
		return ed25519.Verify(key.bytes, signed, given)
	}
	mac := hmac.New(sha256.New, key.bytes)
	mac.Write(signed)
	return hmac.Equal(given, mac.Sum(nil))
}

func readEvent(body []byte, id string) (event Event, err error) {
	if !utf8.Valid(body) {
		return event, &WebhookError{"event_invalid", "the body is not UTF-8"}
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return event, &WebhookError{"event_invalid", "the body is no event: " + err.Error()}
	}
	if event.Type == "" || event.Timestamp.IsZero() || event.Data.Subject.ID == "" || event.Data.Sequence == nil {
		return event, &WebhookError{"event_invalid", "the body is no event"}
	}
	if event.ID != id {
		return event, &WebhookError{"event_invalid", "the body is another event than webhook-id names"}
	}
	return event, nil
}

func values(headers []Header, name string) (found []string) {
	for _, header := range headers {
		if strings.EqualFold(header.Name, name) {
			found = append(found, header.Value)
		}
	}
	return found
}

func oneValue(headers []Header, name string) (string, error) {
	found := values(headers, name)
	if len(found) == 0 || found[0] == "" {
		return "", &WebhookError{"header_missing", "found no " + name}
	}
	if len(found) > 1 || strings.Contains(found[0], ",") {
		return "", &WebhookError{"header_repeated", "found several " + name + ", expected one"}
	}
	return found[0], nil
}

// decoded gives the bytes of base64 as an encoder writes it, and false for anything else.
func decoded(text string) ([]byte, bool) {
	bytes, err := base64.StdEncoding.DecodeString(text)
	return bytes, err == nil && base64.StdEncoding.EncodeToString(bytes) == text
}
