// Prints the functions of Kubernetes' CEL environment, one overload per line, for
// crates/homeostat-cel/data/functions.txt.
package main

import (
	"fmt"
	"sort"
	"strings"

	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

func name(t *types.Type) string {
	name := t.TypeName()
	if t.Kind() == types.TypeKind {
		name = "type"
	}
	if len(t.Parameters()) == 0 {
		return name
	}
	return name + "(" + strings.Join(names(t.Parameters()), ", ") + ")"
}

func names(all []*types.Type) (names []string) {
	for _, t := range all {
		names = append(names, name(t))
	}
	return names
}

func main() {
	env := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).NewExpressionsEnv()
	var rows []string
	for function, declared := range env.Functions() {
		for _, overload := range declared.OverloadDecls() {
			member := ""
			if overload.IsMemberFunction() {
				member = "."
			}
			arguments := strings.Join(names(overload.ArgTypes()), ", ")
			result := name(overload.ResultType())
			rows = append(rows, fmt.Sprintf("%s%s(%s) %s | %s", member, function, arguments, result, overload.ID()))
		}
	}
	sort.Strings(rows)
	fmt.Println(strings.Join(rows, "\n"))
}
