// Package derive keeps derived views: the Runner reads whole transactions from
// the log, keeps table images and each view's state in one store, and appends
// each view's outputs to the topic view.NAME. Package join makes the views.
//
// # A step
//
// The Runner works in steps, each one commit of the store. A step takes a batch
// (a, b] of whole transactions, applies it to the images and collects the roots
// whose documents it can have changed; rebuilds as many of those as the inline
// limit allows from the images as they are at b, the rest goes to the view's
// queue; rebuilds some roots of the queue; appends what differs from the last
// output as one transaction of kind TxOutput, synced; and commits images,
// hashes, queue, the view topics' end offsets and applied = b.
//
// # Invariants
//
//   - For each root of a live view: what was last output equals the view at b,
//     or the root is in the queue, or it lies behind the cursor of a pass.
//   - complete = (least cause in queue and pass) - 1, else b.
//   - A document is only built between batches: it never mixes two positions.
//   - An unfilled column is never shown as null: the document is held in the queue.
//   - Outputs are durable before the commit that remembers them. What the view's
//     topic holds beyond the remembered offsets is sent again, and nothing is
//     output below the highest CSN found there (V24).
//   - A view outputs nothing unless the newest floor snapshot run of each of its
//     tables is done (V10).
//
// # Views over restarts
//
// A view is kept under its name with the definition and the table layouts that
// it was compiled against, so that a restart with the same definition goes on
// whatever was renamed meanwhile. A new or changed view gets images built from
// the log beside what runs; when they have caught up it takes over by a pass:
// every root is rebuilt and compared with the last output of its name, so that
// equal documents are not written again and those that only the old definition
// had get tombstones (V28). Until the pass ends readers are served by the old one.
package derive
