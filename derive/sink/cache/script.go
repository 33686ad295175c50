package cache

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/tailwater/tailwater/derive/sink"
)

// mark is the hash tw:VIEW. A mark without a log stands for a missing one.
type mark struct {
	log      string // hex
	epoch    uint64
	csn, seq uint64
	time     int64
	fp       string
	complete bool
}

func (m mark) stamp() (sink.Stamp, bool) {
	s := sink.Stamp{CSN: m.csn, Seq: m.seq, Time: m.time, Fingerprint: m.fp, Complete: m.complete}
	n, err := hex.Decode(s.Log[:], []byte(m.log))
	return s, err == nil && n == len(s.Log)
}

var markFields = []string{"log", "epoch", "csn", "seq", "time", "fp", "complete"}

// readMark reads the hash of a view.
func readMark(ctx context.Context, c rueidis.Client, key string) (mark, error) {
	vals, err := c.Do(ctx, c.B().Hmget().Key(key).Field(markFields...).Build()).ToArray()
	if err != nil {
		return mark{}, err
	}
	text := make([]string, len(markFields))
	for i := range vals {
		if !vals[i].IsNil() && i < len(text) {
			if text[i], err = vals[i].ToString(); err != nil {
				return mark{}, err
			}
		}
	}
	m := mark{log: text[0], fp: text[5], complete: text[6] == "1"}
	for i, p := range map[int]*uint64{1: &m.epoch, 2: &m.csn, 3: &m.seq} {
		if *p, err = strconv.ParseUint(text[i], 10, 64); err != nil && text[i] != "" {
			return mark{}, fmt.Errorf("%w: field %s of the Redis hash %q is %q and no number: another program uses this key", sink.ErrStopped, markFields[i], key, text[i])
		}
	}
	m.time, _ = strconv.ParseInt(text[4], 10, 64) // 0, unknown, if it is damaged
	return m, nil
}

// claimScript sets log and epoch if the hash is as it was read.
// ARGV: log, epoch found; log, epoch to set; "1" to start a build: seq, fp.
var claimScript = rueidis.NewLuaScript(`
local h = redis.call('HMGET', KEYS[1], 'log', 'epoch')
if (h[1] or '') ~= ARGV[1] or (h[2] or '0') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'log', ARGV[3], 'epoch', ARGV[4])
if ARGV[5] == '1' then
  redis.call('HSET', KEYS[1], 'csn', '0', 'seq', ARGV[6], 'time', '0', 'fp', ARGV[7], 'complete', '0')
end
return 1`)

// writeScript is one batch.
// KEYS: the hash, keys to set, keys to delete. ARGV: log, epoch, csn, seq
// expected; csn, seq, time, complete to set; ttl in ms or 0; number of values;
// the values.
var writeScript = rueidis.NewLuaScript(`
local h = redis.call('HMGET', KEYS[1], 'log', 'epoch', 'csn', 'seq')
for i = 1, 4 do
  if h[i] ~= ARGV[i] then return {h[1] or '', h[2] or '0', h[3] or '0', h[4] or '0'} end
end
local n = tonumber(ARGV[10])
if ARGV[9] == '0' then
  for i = 1, n do redis.call('SET', KEYS[i + 1], ARGV[i + 10]) end
else
  for i = 1, n do redis.call('SET', KEYS[i + 1], ARGV[i + 10], 'PX', ARGV[9]) end
end
for i = n + 2, #KEYS do redis.call('UNLINK', KEYS[i]) end
redis.call('HSET', KEYS[1], 'csn', ARGV[5], 'seq', ARGV[6], 'time', ARGV[7], 'complete', ARGV[8])
return {}`)

// classify gives the errors of the server that a person must mend, and says how.
func classify(err error) error {
	if err == nil {
		return nil
	}
	var re *rueidis.RedisError
	if !errors.As(err, &re) {
		return err
	}
	msg := re.Error()
	for prefix, hint := range map[string]string{
		"WRONGPASS": "check user and password",
		"NOAUTH":    "the server wants a password",
		"NOPERM":    "the user needs: +eval +evalsha +hmget +hset +set +unlink +scan +mget +info on the keys of the view and tw:*",
		"WRONGTYPE": "another program uses the key tw:VIEW",
		"CROSSSLOT": "a Redis cluster is not supported; name a single server",
		"MOVED":     "a Redis cluster is not supported; name a single server",
	} {
		if strings.HasPrefix(msg, prefix) {
			return fmt.Errorf("%w: Redis says %s: %s", sink.ErrStopped, firstWords(msg), hint)
		}
	}
	if strings.HasPrefix(msg, "OOM") {
		return fmt.Errorf("redis is at its maxmemory and evicts nothing; raise maxmemory: %w", err)
	}
	return err
}

// firstWords cuts an error of the server short: it may quote a key.
func firstWords(msg string) string {
	if len(msg) > 120 {
		msg = strings.ToValidUTF8(msg[:120], "") + "…"
	}
	return msg
}
