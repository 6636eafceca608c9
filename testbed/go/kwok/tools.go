//go:build tools

// Package kwok names the command that the testbed builds, so that
// `go mod tidy` keeps exactly its dependencies in go.mod and go.sum.
package kwok

import _ "sigs.k8s.io/kwok/cmd/kwok"
