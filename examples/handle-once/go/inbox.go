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
	mutex   sync.Mutex
	file    storage
	size    int64
	broken  error
	handled map[string]bool
	// For each fact of each subject the position of the newest event that was handled.
	newest map[string]map[string]Position
	tables Tables
}

// storage is what the inbox needs of its file.
type storage interface {
	io.WriterAt
	Sync() error
	Truncate(size int64) error
}

// Entry is a line of the file: an event, the fact that it is about, and what was done for it.
type Entry struct {
	EventID string `json:"event_id"`
	Subject string `json:"subject"`
	Fact    string `json:"fact"`
	Position
	Effect []Change `json:"effect"`
}

func newInbox(file storage) *Inbox {
	return &Inbox{file: file, handled: map[string]bool{}, newest: map[string]map[string]Position{}, tables: Tables{}}
}

// openInbox reads the handled events. An unfinished last line after a crash was never answered, and is cut off.
func openInbox(path string) (*Inbox, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	// A second program with the same file would not know of what this one handles.
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, fmt.Errorf("%s is in use by another program: %w", path, err)
	}
	inbox := newInbox(file)
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

// take runs handle, and stores what it returns together with the event's id. It returns "new", "stale" (a newer event about
// the same fact was handled before) or "handled" (this one was: nothing is run). With an error nothing is stored.
func (inbox *Inbox) take(event Event, handle func(event Event, claim Claim) ([]Change, error)) (string, error) {
	// Two deliveries of one event come one after the other.
	inbox.mutex.Lock()
	defer inbox.mutex.Unlock()
	if inbox.broken != nil {
		return "", inbox.broken
	}
	if inbox.handled[event.ID] {
		return "handled", nil
	}
	subject, position := event.Data.Subject.ID, positionOf(event)
	kind, name := factOf(event)
	claim := Claim{fact: kind}
	for other, newest := range inbox.newest[subject] {
		if newest.isNewerThan(position) {
			claim.isStale = claim.isStale || other == name
			claim.isRecordStale = claim.isRecordStale || hasRecord(other)
		}
	}

	effect, err := handle(event, claim)
	if err != nil {
		return "", err
	}
	entry := Entry{event.ID, subject, name, position, effect}
	if err := inbox.store(entry); err != nil {
		return "", err
	}
	inbox.note(entry)
	if claim.isStale {
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
		// Half a line must not precede another one; and bytes that did not reach the disk must not be read as if they had.
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
	facts := inbox.newest[entry.Subject]
	if facts == nil {
		facts = map[string]Position{}
		inbox.newest[entry.Subject] = facts
	}
	if last, found := facts[entry.Fact]; !found || !last.isNewerThan(entry.Position) {
		facts[entry.Fact] = entry.Position
	}
	inbox.tables.apply(entry.Effect)
}
