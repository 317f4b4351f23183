// Prints, as JSON, the Go structs that a pod template is made of: what kube-pod-template.ts makes its table from.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

var (
	structs = map[string][]string{}
	named   = map[string]string{}
)

// These print in their own way, which src/cluster-sim/physics/controllers/pod-template-hash.ts knows.
var special = map[string]bool{
	"v1.Time": true, "v1.FieldsV1": true, "intstr.IntOrString": true, "resource.Quantity": true,
}

func visit(t reflect.Type) {
	name := t.String()
	switch {
	case special[name] || structs[name] != nil:
	case t.Kind() == reflect.Map:
		visit(t.Key())
		visit(t.Elem())
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice:
		visit(t.Elem())
	case t.Kind() == reflect.Struct:
		structs[name] = []string{}
		for i := range t.NumField() {
			field := t.Field(i)
			key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			structs[name] = append(structs[name], field.Name+" "+key+" "+field.Type.String())
			visit(field.Type)
		}
	}
	if t.PkgPath() != "" && t.Kind() != reflect.Struct {
		named[name] = underlying(t)
	}
}

// The type without its name: "string", or "map[v1.ResourceName]resource.Quantity".
func underlying(t reflect.Type) string {
	if t.Kind() == reflect.Map {
		return "map[" + t.Key().String() + "]" + t.Elem().String()
	}
	return t.Kind().String()
}

func main() {
	visit(reflect.TypeFor[corev1.PodTemplateSpec]())
	if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"structs": structs, "named": named}); err != nil {
		panic(err)
	}
}
