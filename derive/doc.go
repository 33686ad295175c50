// Package derive keeps derived views: it reads whole transactions from the log,
// keeps table images and view state in Pebble, and appends each view's outputs
// to the topic view.NAME.
package derive
