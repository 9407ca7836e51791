// A server and a client of gRPC made of Google's library, with messages that are bytes.
//
// `server CERT KEY` listens with TLS on a port that it writes, and ends with its standard input. `client ADDRESS AUTHORITY NAME` makes calls of
// every kind and writes a line about each.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Messages as they are.
type plain struct{}

func (plain) Marshal(message any) ([]byte, error) { return *message.(*[]byte), nil }
func (plain) Unmarshal(bytes []byte, message any) error {
	*message.(*[]byte) = append([]byte(nil), bytes...)
	return nil
}
func (plain) Name() string { return "plain" }

func main() {
	log.SetFlags(0)
	if os.Args[1] == "server" {
		serve(os.Args[2], os.Args[3])
	} else {
		call(os.Args[2], os.Args[3], os.Args[4])
	}
}

func serve(certificate, key string) {
	transport, err := credentials.NewServerTLSFromFile(certificate, key)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	server := grpc.NewServer(grpc.Creds(transport), grpc.ForceServerCodec(plain{}), grpc.UnknownServiceHandler(handle))
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	log.Fatal(server.Serve(listener))
}

// Calls of Wait that their client has given up.
var ended = make(chan bool, 1)

// The last word of a method says what it does with what it receives.
func handle(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	switch method[strings.LastIndex(method, "/")+1:] {
	case "Fail":
		// Nothing was sent: head and trailers are one.
		return status.Error(codes.NotFound, "nothing of the kind: 100 %")
	case "FailLate":
		send(stream, "some")
		return status.Error(codes.Aborted, "no more")
	case "Wait":
		send(stream, "begun")
		<-stream.Context().Done()
		ended <- true
		return stream.Context().Err()
	case "Ended":
		<-ended
		send(stream, "it was told")
	case "Count":
		// One message, then as many as it has bytes.
		message, err := receive(stream)
		if err != nil {
			return err
		}
		for place := range message {
			send(stream, message[:place+1])
		}
	case "Sum":
		total := 0
		for {
			message, err := receive(stream)
			if err == io.EOF {
				break
			} else if err != nil {
				return err
			}
			total += len(message)
		}
		send(stream, fmt.Sprint(total))
	default:
		// An answer to each.
		for {
			message, err := receive(stream)
			if err == io.EOF {
				break
			} else if err != nil {
				return err
			}
			send(stream, strings.ToUpper(message))
		}
	}
	stream.SetTrailer(metadata.Pairs("x-done", "yes"))
	return nil
}

type sender interface{ SendMsg(any) error }
type receiver interface{ RecvMsg(any) error }

func send(stream sender, text string) {
	bytes := []byte(text)
	if err := stream.SendMsg(&bytes); err != nil {
		log.Print("not sent: ", err)
	}
}

func receive(stream receiver) (string, error) {
	var bytes []byte
	err := stream.RecvMsg(&bytes)
	return string(bytes), err
}

func call(address, authority, name string) {
	transport, err := credentials.NewClientTLSFromFile(authority, name)
	if err != nil {
		log.Fatal(err)
	}
	connection, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(transport),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(plain{})))
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()

	var answer []byte
	var trailer metadata.MD
	question := []byte("unary")
	err = connection.Invoke(ctx, "/test.Service/Echo", &question, &answer, grpc.Trailer(&trailer))
	fmt.Println("unary", string(answer), trailer.Get("x-done"), status.Code(err))

	large := []byte(strings.Repeat("x", 1<<20))
	err = connection.Invoke(ctx, "/test.Service/Sum", &large, &answer)
	fmt.Println("large", string(answer), status.Code(err))

	// Of the context that is the present one.
	open := func(method string) grpc.ClientStream {
		stream, err := connection.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/test.Service/"+method)
		if err != nil {
			log.Fatal(err)
		}
		return stream
	}

	stream := open("Count")
	send(stream, "abcd")
	stream.CloseSend()
	rest(stream, "server-stream")

	stream = open("Sum")
	for range 1000 {
		send(stream, "ten bytes.")
	}
	stream.CloseSend()
	rest(stream, "client-stream")

	// Each message is sent when the answer to the one before is there.
	stream = open("Echo")
	for _, text := range []string{"one", "two", "three"} {
		send(stream, text)
		answer, err := receive(stream)
		fmt.Println("in turn", answer, err)
	}
	stream.CloseSend()
	rest(stream, "both")

	stream = open("Fail")
	stream.CloseSend()
	rest(stream, "fails")

	stream = open("FailLate")
	stream.CloseSend()
	rest(stream, "fails late")

	whole := ctx
	ctx, giveUp := context.WithCancel(whole)
	stream = open("Wait")
	text, err := receive(stream)
	fmt.Println("waits", text, err)
	giveUp()
	rest(stream, "given up")
	ctx = whole
	err = connection.Invoke(ctx, "/test.Service/Ended", &question, &answer)
	fmt.Println("the server", string(answer), status.Code(err))
	err = connection.Invoke(ctx, "/test.Service/Echo", &question, &answer)
	fmt.Println("after", string(answer), status.Code(err))
}

// Everything that is still to come.
func rest(stream grpc.ClientStream, name string) {
	for {
		answer, err := receive(stream)
		if err == nil {
			fmt.Println(name, answer)
			continue
		}
		if err == io.EOF {
			fmt.Println(name, "ends", codes.OK, stream.Trailer().Get("x-done"))
		} else {
			fmt.Println(name, "ends", status.Code(err), status.Convert(err).Message())
		}
		return
	}
}
