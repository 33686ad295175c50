package cache

import (
	"context"
	"fmt"

	"github.com/tailwater/tailwater/derive/sink"
)

// pageSize is the COUNT of one SCAN.
const pageSize = 1000

// Finish deletes keys of the template that belong to no document (V29) and completes the stamp.
func (t *target) Finish(ctx context.Context, s sink.Stamp, keep func(id string) (bool, error)) error {
	if err := t.fence(ctx); err != nil {
		return err
	}
	err := t.eachPage(ctx, func(keys []string) error {
		for len(keys) > 0 {
			n := min(len(keys), t.opts.BatchCount)
			b := t.newBatch()
			for _, k := range keys[:n] {
				b.add(k, nil)
			}
			if err := t.run(ctx, b, t.found.csn, t.found.time, false); err != nil {
				return err
			}
			keys = keys[n:]
		}
		return nil
	}, keep)
	if err != nil {
		return fmt.Errorf("sweep view %q in redis: %w", t.view, classify(err))
	}
	return t.run(ctx, t.newBatch(), max(s.CSN, t.found.csn), max(s.Time, t.found.time), true)
}

// eachPage calls fn with keys of the template whose documents are not to be kept.
func (t *target) eachPage(ctx context.Context, fn func(keys []string) error, keep func(id string) (bool, error)) error {
	return t.scan(ctx, func(keys, ids []string) error {
		var gone []string
		for i, id := range ids {
			ok, err := keep(id)
			if err != nil {
				return err
			}
			if !ok {
				gone = append(gone, keys[i])
			}
		}
		if len(gone) == 0 {
			return nil
		}
		return fn(gone)
	})
}

// scan calls fn with the keys that the template can have made, and their ids; a key may come twice.
func (t *target) scan(ctx context.Context, fn func(keys, ids []string) error) error {
	glob := t.template.glob()
	for cursor := uint64(0); ; {
		rctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
		page, err := t.client.Do(rctx, t.client.B().Scan().Cursor(cursor).Match(glob).Count(pageSize).Build()).AsScanEntry()
		cancel()
		if err != nil {
			return err
		}
		var keys, ids []string
		for _, k := range page.Elements {
			if id, ok := t.template.parse(k); ok && k != t.hash {
				keys, ids = append(keys, k), append(ids, id)
			}
		}
		if len(keys) > 0 {
			if err := fn(keys, ids); err != nil {
				return err
			}
		}
		if cursor = page.Cursor; cursor == 0 {
			return nil
		}
	}
}

// scanPart bounds the values that Scan holds at a time.
const scanPart = 64

// Scan calls fn for every document; one may come twice.
func (t *target) Scan(ctx context.Context, fn func(id string, doc []byte) error) error {
	err := t.scan(ctx, func(keys, ids []string) error {
		for len(keys) > 0 {
			n := min(len(keys), scanPart)
			if err := t.read(ctx, keys[:n], ids[:n], fn); err != nil {
				return err
			}
			keys, ids = keys[n:], ids[n:]
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read view %q from redis: %w", t.view, classify(err))
	}
	return nil
}

func (t *target) read(ctx context.Context, keys, ids []string, fn func(id string, doc []byte) error) error {
	rctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
	defer cancel()
	vals, err := t.client.Do(rctx, t.client.B().Mget().Key(keys...).Build()).ToArray()
	if err != nil {
		return err
	}
	for i := range vals {
		if vals[i].IsNil() {
			continue // expired or deleted meanwhile
		}
		doc, err := vals[i].AsBytes()
		if err != nil {
			return err
		}
		if err := fn(ids[i], doc); err != nil {
			return err
		}
	}
	return nil
}
