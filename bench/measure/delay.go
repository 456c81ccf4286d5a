package measure

import (
	"net"
	"sync"
	"time"

	"stocklock/internal/lab/rig"
)

// delayed is a TCP proxy that delays every byte by half a round trip. Unlike a faulty network it
// neither loses nor reorders data.
func delayed(upstream string, roundTrip time.Duration) (*rig.Connections, error) {
	return rig.Accept(func(near net.Conn) {
		far, err := net.Dial("tcp", upstream)
		if err != nil {
			return
		}
		var both sync.WaitGroup
		both.Go(func() { carry(far, near, roundTrip/2) })
		both.Go(func() { carry(near, far, roundTrip/2) })
		both.Wait()
	})
}

// parcel is the data of one read and the time of its delivery.
type parcel struct {
	bytes []byte
	due   time.Time
}

// carry copies one direction until one side closes.
func carry(to, from net.Conn, oneWay time.Duration) {
	var delivering sync.WaitGroup
	defer delivering.Wait()
	defer to.Close()
	parcels := make(chan parcel, 1024)
	delivering.Go(func() {
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
		parcels <- parcel{append([]byte(nil), buffer[:n]...), time.Now().Add(oneWay)}
	}
}
