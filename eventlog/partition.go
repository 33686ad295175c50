package eventlog

import "encoding/binary"

// PartitionOf returns the partition of a key as Kafka's default partitioner
// does: murmur2 with its sign bit cleared, modulo the count. A nil key goes to 0.
func PartitionOf(key []byte, partitions int) int32 {
	if key == nil || partitions <= 1 {
		return 0
	}
	return int32(murmur2(key)&0x7fffffff) % int32(partitions)
}

// murmur2 is the 32-bit hash of org.apache.kafka.common.utils.Utils.murmur2.
func murmur2(data []byte) uint32 {
	const m, r = 0x5bd1e995, 24
	h := uint32(0x9747b28c) ^ uint32(len(data))
	for len(data) >= 4 {
		k := binary.LittleEndian.Uint32(data) * m
		k ^= k >> r
		h = h*m ^ k*m
		data = data[4:]
	}
	switch len(data) {
	case 3:
		h ^= uint32(data[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(data[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(data[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}
