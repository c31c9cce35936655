//go:build tools

// Package oracle pins the commands that judge the embedded server. It is never
// compiled: it exists so that `go mod tidy` keeps what the commands need.
package oracle

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
