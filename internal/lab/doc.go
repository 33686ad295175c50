// Command lab runs the project's long checks: kill (kill -9 of the daemon under
// load), crash (power loss in the file layer), cases (every rule has its test)
// and docs-check (every block of the documentation runs). Each prints its
// figures in one line and exits with 1 on any fault.
package main
