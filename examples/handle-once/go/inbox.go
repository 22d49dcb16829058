package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
)

// Inbox handles each event once in effect. Go's standard library has no database, so events and effects are in one file:
// a line holds an event's id and what was done for it, and is there whole or not at all. With a database, do what take
// does in one transaction: docs/consumer.md has the steps.
type Inbox struct {
	mutex    sync.Mutex
	file     *os.File
	size     int64
	broken   error
	handled  map[string]bool
	subjects map[string]newest
}

type newest struct{ sequence, occurredMs int64 }

// Entry is a line of the file.
type Entry struct {
	EventID    string          `json:"event_id"`
	Subject    string          `json:"subject"`
	Sequence   int64           `json:"sequence"`
	OccurredMs int64           `json:"occurred_ms"`
	Effect     json.RawMessage `json:"effect"`
}

// openInbox reads what was handled. What a crash left of the last line was never answered, and is cut off.
func openInbox(path string) (*Inbox, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	// A second program with the same file would not know of what this one handles.
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("%s is in use by another program: %w", path, err)
	}
	inbox := &Inbox{file: file, handled: map[string]bool{}, subjects: map[string]newest{}}
	reader := bufio.NewReader(file)
	for {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return inbox, inbox.cut()
		}
		if err != nil {
			return nil, err
		}
		var entry Entry
		if err := json.Unmarshal(line, &entry); err != nil {
			return nil, fmt.Errorf("%s, byte %d: %w", path, inbox.size, err)
		}
		inbox.note(entry)
		inbox.size += int64(len(line))
	}
}

// take runs handle, and stores what it returns together with the event's id. It says "new", "stale" (a newer event of the
// subject was handled before) or "handled" (this one was: nothing is run). With an error nothing is stored.
func (inbox *Inbox) take(event Event, handle func(event Event, isStale bool) (any, error)) (string, error) {
	// Two deliveries of one event come one after the other.
	inbox.mutex.Lock()
	defer inbox.mutex.Unlock()
	if inbox.broken != nil {
		return "", inbox.broken
	}
	if inbox.handled[event.ID] {
		return "handled", nil
	}
	subject, sequence, occurredMs := event.Data.Subject.ID, *event.Data.Sequence, event.Timestamp.UnixMilli()
	// Sequences begin anew where the daemon's Redis is lost, with later times: such an event is not stale.
	last, known := inbox.subjects[subject]
	isStale := known && last.sequence > sequence && last.occurredMs >= occurredMs

	effect, err := handle(event, isStale)
	if err != nil {
		return "", err
	}
	content, err := json.Marshal(effect)
	if err != nil {
		return "", err
	}
	entry := Entry{event.ID, subject, sequence, occurredMs, content}
	if err := inbox.store(entry); err != nil {
		return "", err
	}
	inbox.note(entry)
	if isStale {
		return "stale", nil
	}
	return "new", nil
}

func (inbox *Inbox) store(entry Entry) error {
	line := &bytes.Buffer{}
	if err := json.NewEncoder(line).Encode(entry); err != nil {
		return err
	}
	_, err := inbox.file.WriteAt(line.Bytes(), inbox.size)
	if err == nil {
		err = inbox.file.Sync()
	}
	if err != nil {
		// Half a line must not stand before another one; and what did not reach the disk must not be read as if it had.
		inbox.broken = fmt.Errorf("the inbox could not be written, start the program again: %w", err)
		_ = inbox.cut()
		return inbox.broken
	}
	inbox.size += int64(line.Len())
	return nil
}

func (inbox *Inbox) cut() error { return inbox.file.Truncate(inbox.size) }

func (inbox *Inbox) note(entry Entry) {
	inbox.handled[entry.EventID] = true
	last, known := inbox.subjects[entry.Subject]
	if !known || last.sequence <= entry.Sequence || last.occurredMs < entry.OccurredMs {
		inbox.subjects[entry.Subject] = newest{entry.Sequence, entry.OccurredMs}
	}
}
