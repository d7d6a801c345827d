// Package manifests has only a test: the manifests in packaging/kubernetes are what the API of Kubernetes
// accepts. It is in this module because the types of that API are no dependency of the product.
package manifests
