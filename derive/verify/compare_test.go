package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func side(name string, docs map[string]string) Side {
	return Side{Name: name, Each: func(_ context.Context, fn func(string, []byte) error) error {
		for id, d := range docs {
			for range 2 { // a scan may show a document twice
				if err := fn(id, []byte(d)); err != nil {
					return err
				}
			}
		}
		return nil
	}}
}

func withGet(s Side, docs map[string]string) Side {
	s.Get = func(_ context.Context, id string) ([]byte, error) {
		if d, ok := docs[id]; ok {
			return []byte(d), nil
		}
		return nil, nil
	}
	return s
}

func TestCompare(t *testing.T) {
	view := map[string]string{
		"1": `{"a":1,"b":[1,2]}`, "2": `{"n":1.10}`, "3": `{"x":null}`, "4": `{"t":"é"}`, "5": `{"big":9223372036854775809}`, "6": `{"only":"view"}`, "7": `{}`,
	}
	sink := map[string]string{
		"1": `{ "b":[1,2] ,"a":1}`, "2": `{"n":1.1}`, "3": `{}`, "4": `{"t":"\u00e9"}`, "5": `{"big":9223372036854775808}`, "7": `no json`, "8": `{}`,
	}
	want := `{"view":"products","against":"sink:search","compared":7,"missing":["6"],"extra":["8"],` +
		`"different":[{"id":"2","paths":["n"]},{"id":"3","paths":["x"]},{"id":"5","paths":["big"]},{"id":"7","paths":[""]}]}`
	for _, get := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			v, s := side("view", view), side("sink:search", sink)
			if get {
				v, s = withGet(v, view), withGet(s, sink)
			}
			r, err := Compare(context.Background(), v, s, Options{View: "products"})
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(r)
			if err != nil || string(got) != want {
				t.Errorf("report (Get %v)\n%s\nwant\n%s", get, got, want)
			}
			if r.Equal() {
				t.Error("Equal says nothing was found")
			}
		})
	}
}

func TestCompareEqual(t *testing.T) {
	docs := map[string]string{}
	for i := range 5000 {
		docs[fmt.Sprint(i)] = fmt.Sprintf(`{"n":%d.00}`, i)
	}
	r, err := Compare(context.Background(), side("view", docs), side("sink", docs), Options{})
	if err != nil || !r.Equal() || r.Compared != 5000 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestCompareWithTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := Compare(context.Background(), side("view", map[string]string{"1": `{}`, "2": `{}`}), side("sink", map[string]string{"2": `{}`}), Options{MissingIsFine: true})
		if err != nil || !r.Equal() {
			t.Errorf("%+v, %v; an expired key is not missing", r, err)
		}
	})
}

// What differs only while it changes is no difference.
func TestCompareLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		view, sink := map[string]string{"1": `{"v":2}`, "2": `{}`}, map[string]string{"1": `{"v":1}`}
		begin := time.Now()
		s := side("sink", sink)
		each := s.Each
		s.Each = func(ctx context.Context, fn func(string, []byte) error) error {
			if time.Since(begin) > 0 { // the sink has caught up by the second look
				sink["1"], sink["2"] = view["1"], view["2"]
			}
			return each(ctx, fn)
		}
		r, err := Compare(context.Background(), side("view", view), s, Options{})
		if err != nil || !r.Equal() {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestCompareLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		docs := map[string]string{}
		for i := range 5000 {
			docs[fmt.Sprintf("%05d", i)] = `{}`
		}
		r, err := Compare(context.Background(), side("view", docs), side("sink", nil), Options{Limit: 10})
		if err != nil || len(r.Missing) != 10 || r.MissingTotal != 5000 || !slices.IsSorted(r.Missing) {
			t.Errorf("%d missing of %d, %v", len(r.Missing), r.MissingTotal, err)
		}
	})
}

func TestCompareErrors(t *testing.T) {
	cut := errors.New("cut")
	bad := Side{Name: "sink:search", Each: func(context.Context, func(string, []byte) error) error { return cut }}
	if _, err := Compare(context.Background(), side("view", nil), bad, Options{}); !errors.Is(err, cut) || !strings.Contains(err.Error(), "sink:search") {
		t.Errorf("%v", err)
	}
	if _, err := Compare(context.Background(), side("view", map[string]string{"1": "x"}), side("sink", nil), Options{}); err == nil {
		t.Error("a document of the view that is no JSON")
	}
}
