package main

import "strings"

// What an event is about: a later event makes an earlier one stale only where both are about the same fact.
var factsByType = map[string]string{
	"route.available":                   "route",
	"route.unavailable":                 "route",
	"route.moved":                       "route",
	"receiver.events_dropped":           "notice",
	"upstream.record_too_large":         "notice",
	"upstream.cursor_expired":           "notice",
	"intentwatch.suspension_ended":      "notice",
	"intentwatch.storage_truncated":     "notice",
	"intentwatch.quote_domain_unproven": "notice",
	"intentwatch.large_removal":         "notice",
	"intentwatch.storage_restored":      "notice",
	"intentwatch.clock_jumped":          "notice",
	"intentwatch.clock_differs":         "notice",
	"intentwatch.test":                  "notice",
}

var factsByWord = map[string]string{
	"updated":     "update",
	"step_failed": "update",
	"error":       "update",
	"refund_sent": "update",
	"verified":    "proof",
	"disputed":    "proof",
	"unproven":    "proof",
	"overdue":     "reminder",
	"expiring":    "reminder",
	"expired":     "reminder",
}

// factOf gives the kind of the fact, and its name, which distinguishes the facts of one subject.
func factOf(event Event) (kind, name string) {
	word := wordOf(event)
	kind = factsByType[event.Type]
	if kind == "" && isAboutStatus(event, word) {
		kind = "status"
	}
	if kind == "" {
		kind = factsByWord[word]
	}
	if kind == "" {
		kind = "notice"
	}
	switch kind {
	case "proof":
		return kind, "proof:" + event.Data.Proof.Payment
	case "update", "notice":
		return kind, kind + ":" + word
	}
	return kind, kind
}

// hasRecord is true when events about a fact have a new record. Those about other facts repeat it.
func hasRecord(name string) bool { return name == "status" || strings.HasPrefix(name, "update:") }

func wordOf(event Event) string {
	_, word, _ := strings.Cut(event.Type, ".")
	return word
}

// The name alone does not decide it: `quote.expired` comes from the clock while the quote is `active`, and from the upstream
// with the status `expired`.
func isAboutStatus(event Event, word string) bool {
	status := strings.ToLower(event.Data.Status)
	return status == word || status != strings.ToLower(event.Data.PreviousStatus)
}

// Position is where an event is among those of its subject. One without `epoch` is of the first epoch.
type Position struct {
	Epoch      int64 `json:"epoch"`
	Sequence   int64 `json:"sequence"`
	OccurredMs int64 `json:"occurred_ms"`
}

func positionOf(event Event) Position {
	return Position{event.Data.Epoch, *event.Data.Sequence, event.Timestamp.UnixMilli()}
}

// isNewerThan compares two events of a subject: a restore begins a new epoch, in which sequences may begin anew. A daemon
// that sends no epochs does not count its restores: there what comes after a restore has a later time.
func (one Position) isNewerThan(other Position) bool {
	if one.Epoch != other.Epoch {
		return one.Epoch > other.Epoch
	}
	return one.Sequence > other.Sequence && (one.Epoch > 0 || one.OccurredMs >= other.OccurredMs)
}
