// Uses a cache as a Go program would: many keys over all its servers, written and read back.
package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/bradfitz/gomemcache/memcache"
)

func main() {
	if len(os.Args) < 3 {
		fail("usage: gomemcache COUNT SERVER...")
	}
	count, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fail(err.Error())
	}
	client := memcache.New(os.Args[2:]...)
	for number := range count {
		key := fmt.Sprintf("go-%d", number)
		if err := client.Set(&memcache.Item{Key: key, Value: []byte(key)}); err != nil {
			fail(fmt.Sprintf("set %s: %v", key, err))
		}
	}
	for number := range count {
		key := fmt.Sprintf("go-%d", number)
		item, err := client.Get(key)
		if err != nil || string(item.Value) != key {
			fail(fmt.Sprintf("get %s: %v", key, err))
		}
	}
	fmt.Printf("%d keys\n", count)
}

func fail(why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}
