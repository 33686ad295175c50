// Package spell tells how far a misspelt word is from the words that there are.
// What is near enough, and which words are compared how, is up to who asks.
//
// It imports nothing of ours.
package spell
