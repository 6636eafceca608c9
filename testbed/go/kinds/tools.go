//go:build tools

// Package kinds names a package of each project whose kinds the operator can use,
// so that `go mod tidy` keeps their modules in go.mod and go.sum: the testbed
// takes the definitions that are shipped beside the code.
package kinds

import (
	_ "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	_ "github.com/prometheus-operator/prometheus-operator/pkg/namespacelabeler"
)
