// Prints how Go reads and writes the fields of the stable types as JSON, for `cargo xtask generate`:
// by published type and field, the types from the field down to what its lists and maps hold, what
// becomes of it when it is empty, the embedded structs that it comes from, and its place among the
// others.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type field struct {
	// From the field down to what its lists and maps hold; pointers are looked through.
	Types []string `json:"types"`
	// "drop": left out when empty; "zero" and "null": there in any case; otherwise there when set.
	Empty string `json:"empty,omitempty"`
	// The embedded structs around it, from the outside.
	Within string `json:"within,omitempty"`
	// How many fields are written before it.
	Place int `json:"place"`
}

var stable = regexp.MustCompile(`^v[0-9]+$`)

var jsonReader = reflect.TypeOf((*json.Unmarshaler)(nil)).Elem()

type table map[string]map[string]field

func bare(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// The name under which the OpenAPI documents publish a type.
func published(t reflect.Type) string {
	return "io." + strings.ReplaceAll(strings.Replace(t.PkgPath(), ".io/", ".", 1), "/", ".") + "." + t.Name()
}

// Types that read themselves have no fields of their own.
func isOpaque(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(jsonReader)
}

func (all table) add(t reflect.Type) {
	t = bare(t)
	switch t.Kind() {
	case reflect.Slice, reflect.Map:
		all.add(t.Elem())
		return
	case reflect.Struct:
	default:
		return
	}
	if _, known := all[published(t)]; known || isOpaque(t) {
		return
	}
	own := map[string]field{}
	all[published(t)] = own
	all.fields(t, nil, own)
}

func (all table) fields(t reflect.Type, within []string, own map[string]field) {
	for i := 0; i < t.NumField(); i++ {
		member := t.Field(i)
		name, options, _ := strings.Cut(member.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if name == "" && member.Anonymous {
			all.fields(bare(member.Type), append(within[:len(within):len(within)], member.Name), own)
			continue
		}
		all.add(member.Type)
		var types []string
		for t := bare(member.Type); ; t = bare(t.Elem()) {
			types = append(types, t.String())
			isBytes := t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
			if isOpaque(t) || isBytes || t.Kind() != reflect.Slice && t.Kind() != reflect.Map {
				break
			}
		}
		own[name] = field{types, whenEmpty(member.Type, options), strings.Join(within, "."), len(own)}
	}
}

func whenEmpty(t reflect.Type, options string) string {
	omitted := strings.Contains(options, "omitempty")
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !omitted {
			return "null"
		}
		return ""
	case reflect.Slice, reflect.Map:
		if !omitted {
			return "null"
		}
	case reflect.Struct:
		// No struct counts as empty unless all of it may be left out.
		if strings.Contains(options, "omitzero") {
			return "drop"
		}
		switch reflect.Zero(t).Interface().(type) {
		case metav1.Time, metav1.MicroTime, runtime.RawExtension:
			return "null"
		}
		return "zero"
	default:
		if !omitted {
			return "zero"
		}
	}
	return "drop"
}

func main() {
	all := table{}
	for kind, t := range scheme.Scheme.AllKnownTypes() {
		if stable.MatchString(kind.Version) {
			all.add(t)
		}
	}
	all.add(reflect.TypeOf(apiextensions.CustomResourceDefinitionList{}))
	all.add(reflect.TypeOf(apiregistration.APIServiceList{}))
	if err := json.NewEncoder(os.Stdout).Encode(all); err != nil {
		panic(err)
	}
}
