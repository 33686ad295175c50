package demo

import (
	_ "embed"
	"strings"
)

// View is the name of the shop's view; Sink is the local index that takes it.
const (
	View = "product_search"
	Sink = "find"

	slot = "tailwater_demo" // also the publication's name
)

//go:embed tailwater.yaml
var configTemplate string

// ViewSQL yields, for every document that the view has to hold, its id and the
// document as JSON, both as text.
//
//go:embed view.sql
var ViewSQL string

// Config returns the configuration of the shop's view with the local index.
// The DSN is in it, so the file is for its owner's eyes only.
func Config(dsn, dataDir, listen string) string {
	return strings.NewReplacer("{{DATA_DIR}}", quote(dataDir), "{{DSN}}", quote(dsn), "{{LISTEN}}", quote(listen)).Replace(configTemplate)
}

// quote writes a YAML string in single quotes that no reference is resolved in.
func quote(s string) string {
	s = strings.ReplaceAll(s, "${", "$${")
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}
