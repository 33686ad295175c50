// Package elastic is the sink that keeps documents in Elasticsearch or
// OpenSearch.
//
// # What is in the cluster
//
//	ALIAS                    the name that people search, an alias from the first version on
//	ALIAS-000001 …           generations; the newest complete one is under the alias
//	ALIAS-000001.TAILWATER   an alias through which the generation is written
//
// Writes go through the write alias with require_alias, so that a deleted
// index is never made again by a write, with guessed mappings; a versioned
// delete ignores require_alias, so the alias has a name that no index can have.
// A generation's stamp is in its mapping's _meta:
//
//	"tailwater": {"view","log" (hex),"csn","seq","time" (decimal digits as text),"fingerprint","complete"}
//
// A document is its JSON as the view made it, its _id the document's id, its
// version (external_gte) the CSN; deletes are versioned likewise, and
// index.gc_deletes is 1h, so that a late retry revives nothing (V32).
//
// # Invariants
//
//   - Each item of a bulk answer is judged by itself; an answer that does not
//     cover every item counts as no answer.
//   - A version conflict is success only if the stored version is not above the
//     log's frontier.
//   - A stamp is read and compared before it is replaced (V33).
//   - Reasons of rejections hold no values of the document.
package elastic
