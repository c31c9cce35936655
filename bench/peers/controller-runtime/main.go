// The same controller as the other sides of the benchmark, on controller-runtime: every Pod is
// reconciled, nothing is done; with a number ConfigMaps are reconciled instead, and so many reconciles
// are kept unfinished. `queue` measures the two work queues.
//
// What it says and hears is described in bench/src/runtime/peer.rs.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/go-logr/logr"
)

const sent = "bench.homeostat.dev/sent"

// seen counts reconciles and notes when changes were reconciled.
type seen struct {
	mutex    sync.Mutex
	count    int
	watching bool
	// Which change was reconciled, and when; nanoseconds since 1970, both.
	noted [][2]int64
	// What the main goroutine waits for; it is woken only then.
	awaited func() bool
	changed *sync.Cond
	// How many reconciles are kept unfinished.
	inFlight   int
	unfinished []chan struct{}
	// Whether the oldest of them ends when one more begins.
	goesOn bool
}

func (s *seen) reconciled(object client.Object) {
	now := time.Now().UnixNano()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.count++
	if text, ok := object.GetAnnotations()[sent]; ok && s.watching {
		if at, err := strconv.ParseInt(text, 10, 64); err == nil {
			s.noted = append(s.noted, [2]int64{at, now})
		}
	}
	if s.awaited != nil && s.awaited() {
		s.changed.Broadcast()
	}
}

// hold returns when as many later reconciles have begun as are kept unfinished.
func (s *seen) hold() {
	if s.inFlight == 0 {
		return
	}
	ended := make(chan struct{})
	s.mutex.Lock()
	s.unfinished = append(s.unfinished, ended)
	if s.goesOn {
		s.endOldest()
	}
	if s.awaited != nil && s.awaited() {
		s.changed.Broadcast()
	}
	s.mutex.Unlock()
	<-ended
}

func (s *seen) endOldest() {
	close(s.unfinished[0])
	s.unfinished = s.unfinished[1:]
}

func (s *seen) wait(enough func() bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.awaited = enough
	for !enough() {
		s.changed.Wait()
	}
}

func main() {
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "queue":
		measureQueues()
	case len(os.Args) == 3:
		err = run(os.Args[1], os.Args[2], "0")
	case len(os.Args) == 4:
		err = run(os.Args[1], os.Args[2], os.Args[3])
	default:
		err = fmt.Errorf("usage: controller-runtime KUBECONFIG PODS [IN_FLIGHT] | queue")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(kubeconfig, pods, held string) error {
	count, err := strconv.Atoi(pods)
	if err != nil {
		return err
	}
	inFlight, err := strconv.Atoi(held)
	if err != nil {
		return err
	}
	workers := 10
	if inFlight > 0 {
		workers = inFlight
	}
	log.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		// What its experts do: managed fields are not cached, and reads are not copied.
		Cache: cache.Options{
			DefaultTransform:             cache.TransformStripManagedFields(),
			DefaultUnsafeDisableDeepCopy: new(true),
		},
	})
	if err != nil {
		return err
	}
	seen := &seen{inFlight: inFlight}
	seen.changed = sync.NewCond(&seen.mutex)
	get := manager.GetClient()
	fresh := func() client.Object { return &corev1.Pod{} }
	if inFlight > 0 {
		fresh = func() client.Object { return &corev1.ConfigMap{} }
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(fresh()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			// The other sides are given the object; a reconciler here begins by getting it.
			object := fresh()
			if err := get.Get(ctx, request.NamespacedName, object); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			seen.hold()
			seen.reconciled(object)
			return reconcile.Result{}, nil
		}))
	if err != nil {
		return err
	}

	commands := bufio.NewScanner(os.Stdin)
	say("begin")
	commands.Scan()
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(context.Background()) }()
	go func() {
		if err := <-ended; err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
	}()
	if inFlight > 0 {
		seen.wait(func() bool { return len(seen.unfinished) >= inFlight })
		say("full")
		commands.Scan()
		seen.mutex.Lock()
		seen.goesOn = true
		seen.endOldest()
		seen.mutex.Unlock()
	}
	seen.wait(func() bool { return seen.count >= count })
	say("all")
	commands.Scan()
	// Go gives memory back slowly; it shall not be held against it.
	debug.FreeOSMemory()
	seen.mutex.Lock()
	seen.watching = true
	seen.mutex.Unlock()
	say("settled")
	commands.Scan()
	events, err := strconv.Atoi(commands.Text())
	if err != nil {
		return err
	}
	seen.wait(func() bool { return len(seen.noted) >= events })
	for _, change := range seen.noted {
		fmt.Println(change[0], change[1])
	}
	return nil
}

func say(word string) {
	fmt.Println(word)
}
