// Package keytemplate splits the templates of keys, such as product:{id}, into
// texts and names. The configuration checks them, the cache sink makes keys of them.
//
// It imports nothing of ours.
package keytemplate
