//go:build tools

// Package peeroperator names the other operator's program, so that `go mod tidy`
// pins everything that it is built from: the benchmark runs it beside ours.
package peeroperator

import _ "github.com/c5c3/memcached-operator/cmd"
