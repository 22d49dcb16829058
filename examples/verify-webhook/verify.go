package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

const toleranceSeconds = 300

// Event is what this program needs of an event; docs/events.md has all of it.
type Event struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Data struct {
		Subject struct {
			ID string `json:"id"`
		} `json:"subject"`
	} `json:"data"`
}

// verify gives the event in a webhook, or an error when it is not signed with the secret. body is the bytes as they came.
func verify(secret string, header http.Header, body []byte) (event Event, err error) {
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	sent, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || math.Abs(float64(time.Now().Unix()-sent)) > toleranceSeconds {
		return event, errors.New("the timestamp is not of the last five minutes")
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) < 24 {
		return event, errors.New("the secret is too short or not base64")
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	expected := mac.Sum(nil)
	// Several signatures while a secret is being changed: one that fits is enough.
	for _, signature := range strings.Split(header.Get("webhook-signature"), " ") {
		version, text, _ := strings.Cut(signature, ",")
		given, err := base64.StdEncoding.DecodeString(text)
		if version == "v1" && err == nil && hmac.Equal(given, expected) {
			return event, json.Unmarshal(body, &event)
		}
	}
	return event, errors.New("no signature fits")
}

func handle(response http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return
	}
	event, err := verify(os.Getenv("WEBHOOK_SECRET"), request.Header, body)
	if err != nil {
		http.Error(response, err.Error(), http.StatusUnauthorized)
		return
	}
	// The same event can come twice: do nothing for an id that you have handled.
	fmt.Println(event.ID, event.Type, event.Data.Subject.ID)
	response.WriteHeader(http.StatusNoContent)
}

func main() {
	port := os.Getenv("PORT")
	if port == "" {
		port = "8000"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening", listener.Addr())
	log.Fatal(http.Serve(listener, http.HandlerFunc(handle)))
}
