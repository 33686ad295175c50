// Package bench is the harness of all benches: it runs a floor tool and the
// product in turn on the same machine and judges the ratio of their rates.
//
// A row alternates A B B A (A the floor tool, B the product), so that a machine
// that gets slower or faster favours neither; each A with the B beside it is a
// pair. The row's ratio is the median over the pairs, given with the least and
// the greatest. Two runs of the floor tool that follow each other are the A/A
// control: their ratio says what a difference means that is none. A row without
// a floor tool is measured against a fixed rate, and its control is the product
// with itself.
//
// Every run is a process of its own. Its CPU seconds and its peak RSS are the
// kernel's account of that process (getrusage).
//
//	NAME ratio=R [min..max] aa=R goal=G ok|noise|MISS|skip cpu=B/A rss=B/A  note
//
// ok: the median reaches the goal. noise: the goal lies inside [min..max]
// widened by the spread of the control. MISS: neither.
package bench
