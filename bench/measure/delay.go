package measure

import (
	"net"
	"sync"
	"time"
)

// delayed is a TCP proxy that delays every byte by half a round trip. Unlike a faulty network it
// neither loses nor reorders data.
type delayed struct {
	listener net.Listener
	upstream string
	oneWay   time.Duration

	mu    sync.Mutex // guards the rest
	conns []net.Conn
	done  sync.WaitGroup
}

func newDelayed(upstream string, roundTrip time.Duration) (*delayed, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &delayed{listener: listener, upstream: upstream, oneWay: roundTrip / 2}
	d.done.Go(d.accept)
	return d, nil
}

func (d *delayed) addr() string { return d.listener.Addr().String() }

func (d *delayed) close() {
	d.listener.Close()
	d.mu.Lock()
	for _, c := range d.conns {
		c.Close()
	}
	d.mu.Unlock()
	d.done.Wait()
}

func (d *delayed) accept() {
	for {
		near, err := d.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", d.upstream)
		if err != nil {
			near.Close()
			continue
		}
		d.mu.Lock()
		d.conns = append(d.conns, near, far)
		d.mu.Unlock()
		d.done.Go(func() { d.carry(far, near) })
		d.done.Go(func() { d.carry(near, far) })
	}
}

// parcel is the data of one read and the time of its delivery.
type parcel struct {
	bytes []byte
	due   time.Time
}

// carry copies one direction until one side closes.
func (d *delayed) carry(to, from net.Conn) {
	defer to.Close()
	parcels := make(chan parcel, 1024)
	d.done.Go(func() {
		for p := range parcels {
			sleepUntil(p.due)
			if _, err := to.Write(p.bytes); err != nil {
				from.Close() // ends the loop that reads
			}
		}
	})
	defer close(parcels)
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		parcels <- parcel{append([]byte(nil), buffer[:n]...), time.Now().Add(d.oneWay)}
	}
}
