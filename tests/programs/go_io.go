// Goroutines that write, read back and remove files of their own.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

func work(number int, dir string) (written, read int, err error) {
	name := filepath.Join(dir, fmt.Sprintf("go%d", number))
	file, err := os.Create(name)
	if err != nil {
		return
	}
	defer file.Close()
	for i := 0; i < 20; i++ {
		n, err := file.Write(make([]byte, 100*number+i+1))
		if err != nil {
			return written, read, err
		}
		written += n
	}
	buffer := make([]byte, 777)
	for at := 0; at < written; {
		n, err := file.ReadAt(buffer, int64(at))
		read += n
		at += n
		if err != nil && at < written {
			return written, read, err
		}
	}
	return written, read, os.Rename(name, name+".done")
}

func main() {
	const count = 8
	var group sync.WaitGroup
	var lines [count]string
	for i := 0; i < count; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			written, read, err := work(i, "data")
			lines[i] = fmt.Sprintf("go%d\t%d %d %v", i, written, read, err)
		}()
	}
	group.Wait()
	for _, line := range lines {
		fmt.Println(line)
	}
	if _, err := os.Open("data/none"); err != nil {
		fmt.Println(err)
	}
	os.Exit(4)
}
