//go:build tools

// Package promtool names the command that the testbed builds, so that
// `go mod tidy` keeps exactly its dependencies in go.mod and go.sum.
package promtool

import _ "github.com/prometheus/prometheus/cmd/promtool"
