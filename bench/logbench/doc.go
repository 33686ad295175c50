// Logbench measures the log (docs/performance.md says what each row means):
//
//	logbench [-gib 1] [-pairs 5] [-rows GLOB] [-dir DIR] [-results DIR]
//
// It runs itself as a child for each run of the product: logbench -do NAME with
// the flags of params does one workload and prints a bench.Sample as JSON.
package main
