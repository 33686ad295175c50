package eventlog

import "testing"

// The vectors of Kafka's own org.apache.kafka.common.utils.UtilsTest.testMurmur2.
func TestMurmur2KafkaVectors(t *testing.T) {
	for key, want := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		if got := int32(murmur2([]byte(key))); got != want {
			t.Errorf("murmur2(%q) = %d, want %d", key, got, want)
		}
	}
}

func TestPartitionOf(t *testing.T) {
	for _, tt := range []struct {
		key  []byte
		n    int
		want int32
	}{
		{nil, 4, 0},
		{[]byte("foobar"), 1, 0},
		{[]byte("foobar"), 4, int32(uint32(-790332482+1<<32) & 0x7fffffff % 4)},
		{[]byte{}, 7, int32(murmur2(nil)&0x7fffffff) % 7},
	} {
		if got := PartitionOf(tt.key, tt.n); got != tt.want {
			t.Errorf("PartitionOf(%q, %d) = %d, want %d", tt.key, tt.n, got, tt.want)
		}
	}
}
