package main

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	rounds  = 200_000
	waiting = 100_000
	passes  = 7
)

// measureQueues prints a line per queue: its name, and the nanoseconds of one add, get, forget and
// done with nothing else in the queue and with many keys in it.
func measureQueues() {
	plain := func() workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return workqueue.NewTypedRateLimitingQueue(
			workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	}
	priority := func() workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return priorityqueue.New[reconcile.Request]("bench")
	}
	fmt.Println("client-go", median(plain, 0), median(plain, waiting))
	fmt.Println("priority", median(priority, 0), median(priority, waiting))
}

// median is that of several passes: any of them may be disturbed.
func median(queue func() workqueue.TypedRateLimitingInterface[reconcile.Request], depth int) int64 {
	taken := make([]int64, passes)
	for pass := range taken {
		taken[pass] = measureQueue(queue(), depth)
	}
	slices.Sort(taken)
	return taken[passes/2]
}

func measureQueue(queue workqueue.TypedRateLimitingInterface[reconcile.Request], depth int) int64 {
	keys := make([]reconcile.Request, depth+rounds)
	for number := range keys {
		keys[number].NamespacedName = types.NamespacedName{
			Namespace: fmt.Sprintf("namespace-%d", number%100),
			Name:      fmt.Sprintf("pod-%07d", number),
		}
	}
	for _, key := range keys[:depth] {
		queue.Add(key)
	}
	begin := time.Now()
	for _, key := range keys[depth:] {
		queue.Add(key)
		got, _ := queue.Get()
		queue.Forget(got)
		queue.Done(got)
	}
	taken := time.Since(begin)
	queue.ShutDown()
	return taken.Nanoseconds() / rounds
}
