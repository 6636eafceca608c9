//go:build tools

// Package helm names the command that the testbed builds, so that
// `go mod tidy` keeps exactly its dependencies in go.mod and go.sum.
package helm

import _ "helm.sh/helm/v4/cmd/helm"
