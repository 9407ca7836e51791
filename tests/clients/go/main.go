// A client of HTTP/1.1, HTTP/2 (over TLS and in clear) and HTTP/3 made of Go's libraries and quic-go.
//
// Arguments: h1, h2, h2c or h3, a URL, the User-Agent, the address to dial, and a file with the authority's certificate. It asks twice on one
// connection, and writes the protocol and the body of the second answer.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"golang.org/x/net/http2"
)

func main() {
	kind, url, agent, address, authority := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	pem, err := os.ReadFile(authority)
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: transport(kind, address, &tls.Config{RootCAs: roots}), Timeout: 20 * time.Second}
	for attempt := 0; attempt < 2; attempt++ {
		request, err := http.NewRequest("GET", url, nil)
		if err != nil {
			log.Fatal(err)
		}
		request.Header.Set("User-Agent", agent)
		response, err := client.Do(request)
		if err != nil {
			log.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			log.Fatal(err)
		}
		response.Body.Close()
		if attempt == 1 {
			fmt.Printf("%s %d\n%s", response.Proto, response.StatusCode, body)
		}
	}
}

func transport(kind, address string, config *tls.Config) http.RoundTripper {
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	switch kind {
	case "h1":
		return &http.Transport{DialContext: dial, TLSClientConfig: config}
	case "h2":
		return &http.Transport{DialContext: dial, TLSClientConfig: config, ForceAttemptHTTP2: true}
	case "h2c":
		return &http2.Transport{
			AllowHTTP: true,
			DialTLSContext: func(ctx context.Context, network, at string, _ *tls.Config) (net.Conn, error) {
				return dial(ctx, network, at)
			},
		}
	default:
		return &http3.Transport{
			TLSClientConfig: config,
			Dial: func(ctx context.Context, _ string, tls *tls.Config, quicly *quic.Config) (*quic.Conn, error) {
				return quic.DialAddr(ctx, address, tls, quicly)
			},
		}
	}
}
