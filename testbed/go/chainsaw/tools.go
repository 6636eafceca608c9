//go:build tools

// Package chainsaw names the command that the testbed builds, so that
// `go mod tidy` keeps exactly its dependencies in go.mod and go.sum.
package chainsaw

import _ "github.com/kyverno/chainsaw"
