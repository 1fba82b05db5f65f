// The real etcd, built from its Go module, as the store of the kube-apiserver under test.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
