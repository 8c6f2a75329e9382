// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	pb "github.com/tinker-operator/tinker-operator/internal/exchange/exchangepb"
	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// framesOf returns the frames that sendFrames sends.
func framesOf(t testing.TB, body []byte) []*pb.SubmitFrame {
	t.Helper()
	var frames []*pb.SubmitFrame
	err := sendFrames(&pb.SubmitHeader{}, body, func(frame *pb.SubmitFrame) error {
		frames = append(frames, frame)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return frames
}

// bodyOf reads the body of frames: the first has the header.
func bodyOf(frames []*pb.SubmitFrame) ([]byte, error) {
	next := 1
	return io.ReadAll(newBody(frames[0].GetHeader(), func() (*pb.SubmitFrame, error) {
		if next == len(frames) {
			return nil, io.EOF
		}
		next++
		return frames[next-1], nil
	}))
}

func TestFramesCarryBodiesOfAnySize(t *testing.T) {
	for _, size := range []int{0, 1, maxPieceBytes - 1, maxPieceBytes, maxPieceBytes + 1, 5*maxPieceBytes + 7} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			body := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
			frames := framesOf(t, body)
			for i, frame := range frames {
				if n := proto.Size(frame); n > MaxFrameBytes {
					t.Errorf("frame %d has %d bytes, more than %d", i, n, MaxFrameBytes)
				}
			}
			got, err := bodyOf(frames)
			if err != nil || !bytes.Equal(got, body) {
				t.Errorf("%d bytes came, %v", len(got), err)
			}
		})
	}
}

func piece(n int) *pb.SubmitFrame {
	return &pb.SubmitFrame{Frame: &pb.SubmitFrame_Piece{Piece: make([]byte, n)}}
}

func TestBodyNamesWhatIsWrong(t *testing.T) {
	cases := map[string]struct {
		change func(frames []*pb.SubmitFrame) []*pb.SubmitFrame
		field  string
	}{
		"a frame is missing": {func(f []*pb.SubmitFrame) []*pb.SubmitFrame { return f[:len(f)-1] }, "bytes"},
		"a frame too many":   {func(f []*pb.SubmitFrame) []*pb.SubmitFrame { return append(f, piece(1)) }, "bytes"},
		"an empty frame":     {func(f []*pb.SubmitFrame) []*pb.SubmitFrame { return append(f, piece(0)) }, "piece"},
		"a second header":    {func(f []*pb.SubmitFrame) []*pb.SubmitFrame { return append(f, f[0]) }, "piece"},
		"a frame too large": {func(f []*pb.SubmitFrame) []*pb.SubmitFrame { f[1] = piece(MaxFrameBytes + 1); return f },
			"piece"},
		"a group too large": {func(f []*pb.SubmitFrame) []*pb.SubmitFrame {
			f[0].GetHeader().Bytes = MaxGroupBytes + 1
			return f
		}, "bytes"},
		"fewer than nothing": {func(f []*pb.SubmitFrame) []*pb.SubmitFrame { f[0].GetHeader().Bytes = -1; return f },
			"bytes"},
	}
	body := make([]byte, 2*maxPieceBytes)
	for i := range body {
		body[i] = byte(i / 251)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := bodyOf(tc.change(framesOf(t, body)))
			var wrong *rl.FieldError
			if !errors.As(err, &wrong) || wrong.Field != tc.field {
				t.Errorf("reading the body: %v, want an error about %s", err, tc.field)
			}
		})
	}
}

func TestReceiveGroupRefusesAChangedBody(t *testing.T) {
	cases := map[string]func(frames []*pb.SubmitFrame){
		"a byte changed": func(f []*pb.SubmitFrame) {
			changed := bytes.Clone(f[1].GetPiece())
			changed[1000]++
			f[1] = &pb.SubmitFrame{Frame: &pb.SubmitFrame_Piece{Piece: changed}}
		},
		"frames out of order": func(f []*pb.SubmitFrame) { f[1], f[2] = f[2], f[1] },
	}
	group := encodedGroup(7, 16, 32768)
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			frames := framesOf(t, group.Message)
			header := frames[0].GetHeader()
			header.Key, header.Digest = keyToProto(group.Key), group.Digest.String()
			change(frames)
			next := 1
			_, _, err := receiveGroup(header, func() (*pb.SubmitFrame, error) {
				if next == len(frames) {
					return nil, io.EOF
				}
				next++
				return frames[next-1], nil
			})
			var wrong *rl.FieldError
			if !errors.As(err, &wrong) {
				t.Errorf("receiveGroup: %v, want an error about a field", err)
			}
		})
	}
}

func TestBodyHandsErrorsOfTheStreamOn(t *testing.T) {
	broken := errors.New("broken")
	_, err := io.ReadAll(newBody(&pb.SubmitHeader{Bytes: 10}, func() (*pb.SubmitFrame, error) { return nil, broken }))
	if !errors.Is(err, broken) {
		t.Errorf("reading the body: %v", err)
	}
}

// groupOf receives a group in one piece.
func groupOf(header *pb.SubmitHeader, message []byte) (rl.Group, rl.Digest, error) {
	header.Bytes = int64(len(message))
	pieces := [][]byte{message}
	return receiveGroup(header, func() (*pb.SubmitFrame, error) {
		if len(pieces) == 0 || len(message) == 0 {
			return nil, io.EOF
		}
		pieces = nil
		return &pb.SubmitFrame{Frame: &pb.SubmitFrame_Piece{Piece: message}}, nil
	})
}

func TestReceiveGroupChecksTheHeader(t *testing.T) {
	group := exampleGroup(7, 2, 8)
	encoded := encode(group)
	cases := map[string]struct {
		change func(h *pb.SubmitHeader)
		field  string
	}{
		"another slot":    {func(h *pb.SubmitHeader) { h.Key = keyToProto(exampleKey(8)) }, "key"},
		"no key":          {func(h *pb.SubmitHeader) { h.Key = nil }, "key.lineage"},
		"another digest":  {func(h *pb.SubmitHeader) { h.Digest = rl.Digest{}.String() }, "digest"},
		"as it should be": {func(*pb.SubmitHeader) {}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			header := &pb.SubmitHeader{Key: keyToProto(group.Key), Digest: encoded.Digest.String()}
			tc.change(header)
			got, digest, err := groupOf(header, encoded.Message)
			var wrong *rl.FieldError
			if tc.field != "" && (!errors.As(err, &wrong) || wrong.Field != tc.field) {
				t.Errorf("groupOf: %v, want an error about %s", err, tc.field)
			}
			if diff := cmp.Diff(group, got); tc.field == "" && (err != nil || diff != "" || digest != encoded.Digest) {
				t.Errorf("groupOf: digest %s, %v (-want +got):\n%s", digest, err, diff)
			}
		})
	}
}

// TestSubmitTellsInvalidGroupsFromDamagedTransfers checks that the answer to a group that is invalid by itself names
// the field. A group that does not match its header is an error of the connection: the group may be valid, and must
// not become a tombstone.
func TestSubmitTellsInvalidGroupsFromDamagedTransfers(t *testing.T) {
	t.Parallel()
	l := newLearner()
	s := serve(t, "", epochOf(1), l, Timing{})
	a := runClient(t, clientConfig(t, s.address), newWorker())
	take(t, "answer", a.worker.replies)
	conn, err := a.await(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.release()
	group := exampleGroup(7, 2, 8)
	body := encode(group).Message
	message := groupToProto(group)
	message.Members[0].Trajectories[0].Segments[0].Tokens = []byte{1}
	invalid, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	pieceOf := func(body []byte) *pb.SubmitFrame { return &pb.SubmitFrame{Frame: &pb.SubmitFrame_Piece{Piece: body}} }
	header := func() *pb.SubmitHeader {
		return &pb.SubmitHeader{
			Epoch: a.epoch(), Worker: "worker-0", Key: keyToProto(group.Key), Digest: group.Digest().String(),
			Bytes: int64(len(body)),
		}
	}
	cases := map[string]struct {
		change func(h *pb.SubmitHeader)
		body   *pb.SubmitFrame
		status SubmitStatus
		field  string
		err    error
	}{
		"the wrong digest": {
			change: func(h *pb.SubmitHeader) { h.Digest = rl.Digest{}.String() }, body: pieceOf(body), err: ErrProtocol},
		"a frame too large": {
			change: func(h *pb.SubmitHeader) { h.Bytes = 3 << 20 }, body: piece(3 << 20), err: ErrProtocol},
		"an invalid group": {
			change: func(h *pb.SubmitHeader) { h.Bytes = int64(len(invalid)) }, body: pieceOf(invalid),
			status: Invalid, field: "members[0].trajectories[0].segments[0].tokens"},
		"nothing wrong": {change: func(*pb.SubmitHeader) {}, body: pieceOf(body), status: Accepted},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stream, err := conn.api.Submit(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			h := header()
			tc.change(h)
			for _, frame := range []*pb.SubmitFrame{{Frame: &pb.SubmitFrame_Header{Header: h}}, tc.body} {
				if err := stream.Send(frame); err != nil {
					t.Fatal(err)
				}
			}
			message, err := stream.CloseAndRecv()
			if err := clientError(t.Context(), err); !errors.Is(err, tc.err) {
				t.Fatalf("Submit: %v, want %v", err, tc.err)
			}
			if tc.err != nil {
				return
			}
			if message.GetStatus() != tc.status || message.GetField() != tc.field {
				t.Errorf("answer %v, want %v with the field %q", message, tc.status, tc.field)
			}
		})
	}
	if n := len(l.submitted); n != 1 {
		t.Errorf("the learner was handed %d groups, want the good one", n)
	}
}

func TestSubmitWithoutAHeaderIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, "", epochOf(1), newLearner(), Timing{})
	_, conn := dialled(t, s.address)
	stream, err := conn.api.Submit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(piece(5)); err != nil {
		t.Fatal(err)
	}
	_, err = stream.CloseAndRecv()
	if err := clientError(t.Context(), err); !errors.Is(err, ErrProtocol) {
		t.Errorf("Submit: %v, want %v", err, ErrProtocol)
	}
}

func TestSubmitSendsLargeGroups(t *testing.T) {
	t.Parallel()
	l := newLearner()
	s := serve(t, "", epochOf(1), l, Timing{})
	a := runClient(t, clientConfig(t, s.address), newWorker())
	large := exampleGroup(7, 16, 32768)
	if size := len(encode(large).Message); size < 4*MaxFrameBytes {
		t.Fatalf("%d bytes are not a large group", size)
	}
	if reply, err := a.Submit(t.Context(), encode(large)); err != nil || reply.Status != Accepted {
		t.Errorf("Submit = %v, %v", reply, err)
	}
	if got := take(t, "group", l.submitted); got.Digest() != large.Digest() {
		t.Errorf("another group came: got %v, want %v", got.Digest(), large.Digest())
	}
}

// FuzzBody cuts a body into frames of any sizes.
func FuzzBody(f *testing.F) {
	f.Add([]byte("some body"), int64(9), uint16(3))
	f.Add([]byte{}, int64(0), uint16(1))
	f.Add([]byte("some body"), int64(10), uint16(1))
	f.Fuzz(func(t *testing.T, body []byte, announced int64, size uint16) {
		header := &pb.SubmitHeader{Bytes: announced}
		rest := body
		got, err := io.ReadAll(newBody(header, func() (*pb.SubmitFrame, error) {
			if len(rest) == 0 {
				return nil, io.EOF
			}
			n := min(len(rest), int(size))
			part := rest[:n]
			rest = rest[n:]
			return &pb.SubmitFrame{Frame: &pb.SubmitFrame_Piece{Piece: part}}, nil
		}))
		good := announced == int64(len(body)) && (size > 0 || len(body) == 0)
		if (err == nil) != good {
			t.Fatalf("%d bytes, announced %d, in frames of %d: %v", len(body), announced, size, err)
		}
		if err == nil && !bytes.Equal(got, body) {
			t.Fatalf("the body is %x, want %x", got, body)
		}
	})
}

func BenchmarkSubmit(b *testing.B) {
	l := newLearner()
	s := serve(b, "", epochOf(1), l, Timing{})
	a := runClient(b, clientConfig(b, s.address), newWorker())
	group := encodedGroup(1, 8, 512)
	go func() {
		for range l.submitted {
		}
	}()
	b.Cleanup(func() { close(l.submitted) })
	b.SetBytes(int64(len(group.Message)))
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := a.Submit(b.Context(), group); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "groups/s")
}

func BenchmarkDecodeGroup(b *testing.B) {
	encoded := encodedGroup(1, 8, 512).Message
	b.SetBytes(int64(len(encoded)))
	for b.Loop() {
		if _, err := DecodeGroup(encoded); err != nil {
			b.Fatal(err)
		}
	}
}
