// Receives webhooks and handles each event once:
//
//	WEBHOOK_SECRET=… PORT=8000 go run . serve events.log
//	go run . check-vectors ../../../consumer/vectors.json
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

const maxBodyBytes = 65_536

type server struct {
	keys  []Key
	inbox *Inbox
}

func (s server) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, maxBodyBytes))
	if err != nil {
		http.Error(response, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	var headers []Header
	for name, values := range request.Header {
		for _, value := range values {
			headers = append(headers, Header{name, value})
		}
	}
	event, err := verify(s.keys, headers, body, time.Now().Unix())
	if err != nil {
		http.Error(response, err.Error(), http.StatusUnauthorized)
		return
	}
	verdict, err := s.inbox.take(event, handle)
	if err != nil {
		// The daemon sends it again.
		http.Error(response, "not handled", http.StatusInternalServerError)
		log.Println("failed", event.ID, err)
		return
	}
	fmt.Println(verdict, event.ID)
	response.WriteHeader(http.StatusNoContent)
}

func serve(path string) error {
	keys, err := readSecrets(strings.Fields(os.Getenv("WEBHOOK_SECRET")))
	if err != nil {
		return err
	}
	inbox, err := openInbox(path)
	if err != nil {
		return err
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "8000"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	fmt.Println("listening", listener.Addr())
	return http.Serve(listener, server{keys, inbox})
}

func main() {
	err := errors.New("expected: serve FILE, or check-vectors FILE")
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		err = serve(os.Args[2])
	} else if len(os.Args) == 3 && os.Args[1] == "check-vectors" {
		err = checkVectors(os.Args[2])
	}
	if err != nil {
		log.Fatal(err)
	}
}
