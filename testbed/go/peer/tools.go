//go:build tools

// Package peer names a package of the other operator, so that `go mod tidy`
// keeps its module in go.mod and go.sum: the testbed takes its test suite.
package peer

import _ "github.com/c5c3/memcached-operator/api/v1beta1"
