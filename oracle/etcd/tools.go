//go:build tools

// Package oracle pins etcd, the store under the judging kube-apiserver. It is
// never compiled: it exists so that `go mod tidy` keeps what the command needs.
package oracle

import _ "go.etcd.io/etcd/server/v3"
