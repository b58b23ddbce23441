// Command vulnerable calls what is known to be vulnerable, so that scripts/vulncheck
// can be seen to fail.
package main

import (
	"fmt"

	"golang.org/x/text/language"
)

func main() { fmt.Println(language.Parse("en")) }
