// Prints how the internal types of Kubernetes are written as JSON, which is how answers show the
// values they refuse: by published type, the fields of its internal counterpart in their order,
// what each is called there, which published field it comes from, and its type.
package main

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	definitions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	services "k8s.io/kube-aggregator/pkg/apis/apiregistration/install"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/controlplane"
)

type field struct {
	Shown string `json:"shown"`
	// The published name, with dots between those on the way to it; after `^` it is one of the struct
	// around this one, after `?` the value itself if it is of that JSON type.
	From string `json:"from"`
	// `string`, `number`, `bool`, `amount`, `number or string`, `json`, the name of a published type,
	// and before them `*`, `[]` and `map[]`.
	Type string `json:"type"`
	// Left out when it is empty.
	Omitted bool `json:"omitted,omitempty"`
}

type table map[string][]field

var stable = regexp.MustCompile(`^v[0-9]+$`)

var (
	jsonWriter = reflect.TypeFor[json.Marshaler]()
	amount     = reflect.TypeFor[resource.Quantity]()
	either     = reflect.TypeFor[intstr.IntOrString]()
)

// Where fields come from that are called otherwise, or are somewhere else, in the published types:
// what Pods say of their host is part of their security context, which they always have, and what may
// stand instead of a schema is told from it by its JSON type.
var moved = map[string]string{
	"apiextensions.JSONSchemaPropsOrArray.Schema":         "?object",
	"apiextensions.JSONSchemaPropsOrArray.JSONSchemas":    "?array",
	"apiextensions.JSONSchemaPropsOrBool.Allows":          "?allows",
	"apiextensions.JSONSchemaPropsOrBool.Schema":          "?object",
	"apiextensions.JSONSchemaPropsOrStringArray.Schema":   "?object",
	"apiextensions.JSONSchemaPropsOrStringArray.Property": "?array",
	"core.PodSecurityContext.HostNetwork":                 "^hostNetwork",
	"core.PodSecurityContext.HostPID":                     "^hostPID",
	"core.PodSecurityContext.HostIPC":                     "^hostIPC",
	"core.PodSecurityContext.ShareProcessNamespace":       "^shareProcessNamespace",
	"core.PodSecurityContext.HostUsers":                   "^hostUsers",
}

// The name under which the OpenAPI documents publish a type.
func published(t reflect.Type) string {
	return "io." + strings.ReplaceAll(strings.Replace(t.PkgPath(), ".io/", ".", 1), "/", ".") + "." + t.Name()
}

// The published field of a Go name, also if it is in an embedded struct that has a name of its own.
func source(t reflect.Type, name string) (reflect.Type, string) {
	member, found := t.FieldByName(name)
	if !found {
		return nil, ""
	}
	var path []string
	for _, index := range member.Index {
		step := bare(t).Field(index)
		if name, _, _ := strings.Cut(step.Tag.Get("json"), ","); name != "" {
			path = append(path, name)
		}
		t = step.Type
	}
	if len(path) == 0 {
		// It is embedded there, and a field of its own here.
		return member.Type, "?object"
	}
	return member.Type, strings.Join(path, ".")
}

func bare(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func elem(t reflect.Type) reflect.Type {
	if t = bare(t); t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Map) {
		return t.Elem()
	}
	return nil
}

// The type of an internal value as it is written, beside the published type that it comes from.
func (all table) form(internal, public reflect.Type) string {
	if internal == amount {
		return "amount"
	}
	if internal == either {
		return "number or string"
	}
	if internal.Kind() == reflect.Pointer {
		return "*" + all.form(internal.Elem(), bare(public))
	}
	if internal.Implements(jsonWriter) || reflect.PointerTo(internal).Implements(jsonWriter) {
		return "json"
	}
	switch internal.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Interface:
		return "json"
	case reflect.Slice:
		if internal.Elem().Kind() == reflect.Uint8 {
			return "json"
		}
		return "[]" + all.form(internal.Elem(), elem(public))
	case reflect.Map:
		return "map[]" + all.form(internal.Elem(), elem(public))
	case reflect.Struct:
		public = bare(public)
		if public == nil || public.Kind() != reflect.Struct {
			return "json"
		}
		all.add(internal, public)
		return published(public)
	default:
		return "number"
	}
}

func (all table) add(internal, public reflect.Type) {
	name := published(public)
	if _, known := all[name]; known {
		return
	}
	all[name] = []field{}
	all[name] = all.fields(internal, public)
}

func (all table) fields(internal, public reflect.Type) []field {
	found := []field{}
	for i := 0; i < internal.NumField(); i++ {
		member := internal.Field(i)
		shown, options, _ := strings.Cut(member.Tag.Get("json"), ",")
		if shown == "-" || !member.IsExported() {
			continue
		}
		if shown == "" && member.Anonymous && bare(member.Type).Kind() == reflect.Struct {
			found = append(found, all.fields(bare(member.Type), public)...)
			continue
		}
		if shown == "" {
			shown = member.Name
		}
		place := internal.String() + "." + member.Name
		t, from := source(public, member.Name)
		form := ""
		if place == "core.PodSpec.SecurityContext" {
			form = all.form(member.Type.Elem(), t)
		} else {
			form = all.form(member.Type, t)
		}
		if instead, is := moved[place]; is {
			from = instead
		}
		omitted := strings.Contains(options, "omitzero") ||
			strings.Contains(options, "omitempty") && member.Type.Kind() != reflect.Struct
		found = append(found, field{shown, from, form, omitted})
	}
	return found
}

func main() {
	scheme := legacyscheme.Scheme
	definitions.Install(scheme)
	services.Install(scheme)
	known := scheme.AllKnownTypes()
	kinds := slices.SortedFunc(maps.Keys(known), func(a, b schema.GroupVersionKind) int {
		return strings.Compare(a.String(), b.String())
	})
	all := table{}
	for _, kind := range kinds {
		if !stable.MatchString(kind.Version) {
			continue
		}
		internal, err := scheme.New(kind.GroupKind().WithVersion(runtime.APIVersionInternal))
		if err != nil {
			continue
		}
		all.add(reflect.TypeOf(internal).Elem(), known[kind])
	}
	if err := json.NewEncoder(os.Stdout).Encode(all); err != nil {
		panic(err)
	}
}
