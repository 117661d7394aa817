package traces

import "strings"

// Product is the program that the caller's user agent names: the controller with its release, such as
// "elbv2.k8s.aws/v3.4.0", wherever that stands, and else the first word.
func (c *Caller) Product() string {
	product := ""
	for _, word := range strings.Fields(c.UserAgent) {
		if product == "" || strings.HasPrefix(word, "elbv2.k8s.aws/") {
			product = word
		}
	}
	return product
}
