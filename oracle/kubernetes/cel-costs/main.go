// Evaluates expressions in Kubernetes' CEL environment and prints what each gave and what it cost,
// for crates/homeostat-cel/data/costs.json: `go run ./cel-costs < costs.json`.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

type row struct {
	Expression string `json:"expression"`
	Cost       uint64 `json:"cost"`
	Gives      any    `json:"gives"`
	Error      string `json:"error,omitempty"`
}

type table struct {
	Schema  json.RawMessage `json:"schema"`
	Object  json.RawMessage `json:"object"`
	Results []row           `json:"results"`
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// A value as JSON, as far as it has a form there.
func shown(value ref.Val) any {
	switch value := value.(type) {
	case types.Bool, types.Int, types.Uint, types.Double, types.String, types.Bytes:
		return value.Value()
	case types.Null:
		return nil
	case types.Duration:
		return value.Duration.String()
	case types.Timestamp:
		return value.Time.UTC().Format(time.RFC3339Nano)
	case *types.Type:
		return "type " + value.TypeName()
	case *types.Optional:
		if value.HasValue() {
			return map[string]any{"some": shown(value.GetValue())}
		}
		return map[string]any{}
	case traits.Lister:
		items := []any{}
		for at := value.Iterator(); at.HasNext() == types.True; {
			items = append(items, shown(at.Next()))
		}
		return items
	case traits.Mapper:
		fields := map[string]any{}
		for at := value.Iterator(); at.HasNext() == types.True; {
			key := at.Next()
			fields[fmt.Sprintf("%v", key.Value())] = shown(value.Get(key))
		}
		return fields
	default:
		return "a " + value.Type().TypeName()
	}
}

func main() {
	var asked table
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		panic(err)
	}
	var published v1.JSONSchemaProps
	if err := json.Unmarshal(asked.Schema, &published); err != nil {
		panic(err)
	}
	var internal apiextensions.JSONSchemaProps
	if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&published, &internal, nil); err != nil {
		panic(err)
	}
	structural := must(schema.NewStructural(&internal))
	decl := model.SchemaDeclType(structural, false).MaybeAssignTypeName("selfType")
	env := must(must(environment.MustBaseEnvSet(version.MajorMinor(1, 36)).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("self", decl.CelType()), cel.Variable("any", cel.DynType)},
		DeclTypes:         []*apiservercel.DeclType{decl},
	})).Env(environment.StoredExpressions))
	var object, dynamic any
	if err := json.Unmarshal(asked.Object, &object); err != nil {
		panic(err)
	}
	if err := json.Unmarshal(asked.Object, &dynamic); err != nil {
		panic(err)
	}
	for at, row := range asked.Results {
		ast, issues := env.Compile(row.Expression)
		if issues != nil {
			asked.Results[at].Cost, asked.Results[at].Gives = 0, nil
			asked.Results[at].Error = "refused: " + issues.String()
			continue
		}
		program := must(env.Program(ast, cel.CostLimit(1000000), cel.CostTracking(&library.CostEstimator{})))
		value, details, err := program.Eval(map[string]any{
			"self": schemacel.UnstructuredToVal(whole(object), structural), "any": whole(dynamic),
		})
		asked.Results[at].Cost = *details.ActualCost()
		if err != nil {
			asked.Results[at].Gives, asked.Results[at].Error = nil, err.Error()
		} else {
			asked.Results[at].Gives = shown(value)
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(asked); err != nil {
		panic(err)
	}
}

// Numbers as the API reads them: whole ones are integers.
func whole(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			value[name] = whole(field)
		}
	case []any:
		for at, item := range value {
			value[at] = whole(item)
		}
	case float64:
		if value == float64(int64(value)) {
			return int64(value)
		}
	}
	return value
}
