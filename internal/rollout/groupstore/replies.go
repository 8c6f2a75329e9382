// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package groupstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tinker-operator/tinker-operator/internal/rl"
)

// repliesEnding is how the names of files of replies end, and repliesMagic how they begin, with the version.
const (
	repliesEnding = ".replies"
	repliesMagic  = "tinker-operator replies "
)

// repliesShare limits the replies of unfinished groups to 1/repliesShare of the disk's bound.
const repliesShare = 8

// replies are the replies of one group that is not finished: a file, to which each is appended. The file begins with
// the magic and the version, and the key as JSON, in a line each.
type replies struct {
	size  int64
	spans map[rl.Digest]span
	// inherited are the requests whose replies an earlier process has kept and this process has not asked for.
	inherited map[rl.Digest]bool
}

// span is where the bytes of a reply are in the file.
type span struct{ from, length int64 }

// A record has the identity of a request, the length of the reply, a checksum of both and the reply, and the reply.
const (
	checksumSize = 8
	recordHeader = sha256.Size + 4 + checksumSize
)

func repliesPath(dir string, key rl.Key) string {
	return strings.TrimSuffix(path(dir, key), ending) + repliesEnding
}

func checksum(header, reply []byte) []byte {
	sum := sha256.New()
	sum.Write(header)
	sum.Write(reply)
	return sum.Sum(nil)[:checksumSize]
}

// Reply returns the reply that was kept for a request of a group. It is inherited if an earlier process of the pod has
// kept it, and this is the first time that this process asks for it.
func (s *Store) Reply(key rl.Key, request rl.Digest) (reply []byte, inherited, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	group := s.replies[key]
	if group == nil {
		return nil, false, false
	}
	at, ok := group.spans[request]
	if !ok {
		return nil, false, false
	}
	reply = make([]byte, at.length)
	file, err := os.Open(repliesPath(s.config.Dir, key))
	if err == nil {
		_, err = file.ReadAt(reply, at.from)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		s.config.Logger.Error("reading a reply of an unfinished group", "slot", key.Slot, "err", err)
		return nil, false, false
	}
	inherited = group.inherited[request]
	delete(group.inherited, request)
	return reply, inherited, true
}

// KeepReply keeps the reply to a request of a group until the group is stored or covered. Without a disk, or without
// room on it, the reply is not kept, and is paid for again if the process ends before the group is stored.
func (s *Store) KeepReply(key rl.Key, request rl.Digest, reply []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := int64(recordHeader + len(reply))
	if s.config.Dir == "" || s.replyBytes+size > s.config.DiskBytes/repliesShare ||
		s.disk+s.replyBytes+size > s.config.DiskBytes {
		return
	}
	group := s.replies[key]
	if group != nil && group.spans[request] != (span{}) {
		return
	}
	if err := s.appendReply(key, group, request, reply); err != nil {
		s.config.Logger.Error("keeping a reply of an unfinished group", "slot", key.Slot, "err", err)
	}
}

// appendReply appends a record. The next write overwrites the remains of a failed one.
func (s *Store) appendReply(key rl.Key, group *replies, request rl.Digest, reply []byte) error {
	file, err := os.OpenFile(repliesPath(s.config.Dir, key), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	var text []byte
	if group == nil {
		if text, err = repliesHeader(s.config.Version, key); err != nil {
			return errors.Join(err, file.Close())
		}
		group = &replies{spans: map[rl.Digest]span{}}
	}
	header := binary.BigEndian.AppendUint32(request[:], uint32(len(reply)))
	text = append(append(append(text, header...), checksum(header, reply)...), reply...)
	_, err = file.WriteAt(text, group.size)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	group.size += int64(len(text))
	group.spans[request] = span{from: group.size - int64(len(reply)), length: int64(len(reply))}
	s.replies[key] = group
	s.replyBytes += int64(len(text))
	return nil
}

func repliesHeader(version int, key rl.Key) ([]byte, error) {
	name, err := json.Marshal(key)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%s%d\n%s\n", repliesMagic, version, name), nil
}

// dropReplies removes the replies of a group.
func (s *Store) dropReplies(key rl.Key) {
	group := s.replies[key]
	if group == nil {
		return
	}
	delete(s.replies, key)
	s.replyBytes -= group.size
	if err := os.Remove(repliesPath(s.config.Dir, key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.config.Logger.Error("removing the replies of a group", "slot", key.Slot, "err", err)
	}
}

// loadReplies reads the replies of an earlier process of the pod. A file is read up to the first damaged record; a
// file without an undamaged record is removed.
func (s *Store) loadReplies() error {
	files, err := filepath.Glob(filepath.Join(s.config.Dir, "*"+repliesEnding))
	if err != nil {
		return fmt.Errorf("reading spill folder: %w", err)
	}
	for _, name := range files {
		key, group := s.readReplies(name)
		if group == nil || s.entries[key] != nil {
			if err := os.Remove(name); err != nil {
				return fmt.Errorf("removing damaged replies: %w", err)
			}
			continue
		}
		s.replies[key] = group
		s.replyBytes += group.size
	}
	return nil
}

// readReplies returns nil for a file without replies that can be used.
func (s *Store) readReplies(name string) (rl.Key, *replies) {
	data, err := os.ReadFile(name)
	if err != nil {
		return rl.Key{}, nil
	}
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	second, _, ok := bytes.Cut(rest, []byte("\n"))
	var key rl.Key
	decoder := json.NewDecoder(bytes.NewReader(second))
	decoder.DisallowUnknownFields()
	if !ok || string(first) != fmt.Sprintf("%s%d", repliesMagic, s.config.Version) || decoder.Decode(&key) != nil ||
		repliesPath(s.config.Dir, key) != name {
		return rl.Key{}, nil
	}
	group := &replies{size: int64(len(first) + len(second) + 2), spans: map[rl.Digest]span{},
		inherited: map[rl.Digest]bool{}}
	for {
		request, reply, err := nextReply(data[group.size:])
		if err != nil {
			break
		}
		group.size += recordHeader
		group.spans[request], group.inherited[request] = span{from: group.size, length: int64(len(reply))}, true
		group.size += int64(len(reply))
	}
	if len(group.spans) == 0 {
		return rl.Key{}, nil
	}
	return key, group
}

func nextReply(data []byte) (request rl.Digest, reply []byte, err error) {
	if len(data) < recordHeader {
		return request, nil, io.ErrUnexpectedEOF
	}
	header := data[:sha256.Size+4]
	length := int64(binary.BigEndian.Uint32(header[sha256.Size:]))
	if int64(len(data)-recordHeader) < length {
		return request, nil, io.ErrUnexpectedEOF
	}
	reply = data[recordHeader : recordHeader+length]
	if !bytes.Equal(checksum(header, reply), data[len(header):recordHeader]) {
		return request, nil, errDamaged
	}
	return rl.Digest(header[:sha256.Size]), reply, nil
}
