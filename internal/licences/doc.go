// Package licences has only a test: every module in the shipped programs is under a licence that is
// compatible with Apache 2.0.
package licences
