package postgres

import "testing"

// TestDecodeAllocates: nothing is allocated for a value, whatever is inside it,
// once the batch's memory has grown.
func TestDecodeAllocates(t *testing.T) {
	all := allTypes()
	for name, text := range map[string]string{
		"boolout": "t", "int8out": "-9223372036854775808", "float4out": "1.5e+10", "float8out": "0.1", "numeric_out": "123456789012345678901234567890.10", "cash_out": "-$1,234.50",
		"byteaout": `\x00ff`, "date_out": "2020-02-29", "time_out": "13:51:30.1", "timetz_out": "13:51:30.1+02", "timestamp_out": "2020-01-01 00:00:00.5", "timestamptz_out": "2020-01-01 00:00:00.5+00",
		"interval_out": "P1Y2M3DT4H5M6.78S", "uuid_out": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "jsonb_out": `{"a": [1.10, "x\u00e9", {"b": null}]}`, "text": "some text",
		"int4out[]": "{1,NULL,{2}}", "text[]": `{a,"b \"c\"",NULL}`, "record[]": `{"(1,\"x\")","(2,)"}`, "record": `(1,"a ""q"" \\")`, "byteaout[]": `{"\\x00ff"}`, "timestamp_out[]": `{"2020-01-01 00:00:00"}`,
		"jsonb_out[]": `{"{\"a\": 1}"}`, "hstore_out": `"a"=>"1", "b"=>NULL`, "multirange_out": "{[1,3),[5,7)}", "int2vectorout": "1 2 3",
		"lenient geometry_out": "0101000020E6100000000000000000F03F0000000000000040", "vector_out": "[1,2.5,-3]", "sparsevec_out": "{1:1.5,3:2}/5",
	} {
		typ := all[name]
		if typ == nil {
			t.Fatalf("no decoder %s", name)
		}
		in := []byte(text)
		buf, err := typ.append(nil, in)
		if err != nil {
			t.Errorf("%s of %s: %v", name, text, err)
			continue
		}
		buf = append(buf[:0], make([]byte, 1000)...)
		if n := testing.AllocsPerRun(100, func() { _, _ = typ.append(buf[:0], in) }); n > 0 {
			t.Errorf("%s: %v allocations a value", name, n)
		}
	}
}
