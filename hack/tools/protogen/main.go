// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

// Protogen turns .proto files into Go: it compiles them in Go, so that no protoc has to be
// installed, and hands the descriptors to the plugins protoc-gen-go and protoc-gen-go-grpc, which
// it runs with "go tool" from this module. Buf does the same; it would bring some 60 more modules into this one, to be
// pinned and built, in place of one file.
//
//	protogen -module MODULE -root DIR FILE.proto...
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	module := flag.String("module", "", "module path that go_package begins with")
	root := flag.String("root", ".", "directory of the module")
	flag.Parse()
	if err := run(*module, *root, flag.Args()); err != nil {
		log.Fatalf("protogen: %v", err)
	}
}

func run(module, root string, files []string) error {
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{root}},
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(context.Background(), files...)
	if err != nil {
		return err
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate:  files,
		Parameter:       proto.String("module=" + module),
		CompilerVersion: &pluginpb.Version{Major: proto.Int32(6)},
	}
	for _, file := range compiled {
		request.ProtoFile = append(request.ProtoFile,
			proto.Clone(protoutil.ProtoFromFileDescriptor(file)).(*descriptorpb.FileDescriptorProto))
	}
	for _, plugin := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		if err := generate(plugin, root, request); err != nil {
			return fmt.Errorf("running %s: %w", plugin, err)
		}
	}
	return nil
}

// generate runs one plugin and writes its output.
func generate(plugin, root string, request *pluginpb.CodeGeneratorRequest) error {
	input, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	var output bytes.Buffer
	command := exec.Command("go", "tool", plugin)
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), &output, os.Stderr
	if err := command.Run(); err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(output.Bytes(), &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", *response.Error)
	}
	for _, file := range response.File {
		if err := os.WriteFile(filepath.Join(root, file.GetName()), []byte(file.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
